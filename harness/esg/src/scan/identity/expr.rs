//! Expressions as bytes. Structs are destructured by field, so that no field is forgotten. The
//! position of a name shows whether it is read or bound, and the shape of the tree shows the
//! parentheses.

use super::Writer;
use crate::scan::parse::{Expr, ast};

impl Writer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Name(node) => {
                self.kind(1);
                self.text(&node.id);
            }
            Expr::Attribute(ast::ExprAttribute {
                value,
                attr,
                ctx: _,
                range: _,
                node_index: _,
            }) => {
                self.kind(2);
                self.expr(value);
                self.text(attr);
            }
            Expr::Call(ast::ExprCall { func, arguments, range_start: _, node_index: _ }) => {
                self.kind(3);
                self.expr(func);
                self.arguments(arguments);
            }
            Expr::StringLiteral(node) => {
                self.kind(4);
                self.string(&node.value);
            }
            Expr::NumberLiteral(node) => {
                self.kind(5);
                self.numeral(&node.value);
            }
            Expr::BytesLiteral(node) => {
                self.kind(6);
                self.byte_string(&node.value);
            }
            Expr::BooleanLiteral(node) => {
                self.kind(7);
                self.flag(node.value);
            }
            Expr::NoneLiteral(_) => self.kind(8),
            Expr::EllipsisLiteral(_) => self.kind(9),
            Expr::FString(node) => {
                self.kind(10);
                self.f_string(&node.value);
            }
            Expr::TString(node) => {
                self.kind(11);
                self.t_string(&node.value);
            }
            Expr::BoolOp(ast::ExprBoolOp { op, values, range: _, node_index: _ }) => {
                self.kind(12);
                self.flag(*op == ast::BoolOp::And);
                self.list(values, Self::expr);
            }
            Expr::Named(ast::ExprNamed { target, value, range: _, node_index: _ }) => {
                self.kind(13);
                self.expr(target);
                self.expr(value);
            }
            Expr::BinOp(ast::ExprBinOp { left, op, right, range: _, node_index: _ }) => {
                self.kind(14);
                self.operator(*op);
                self.expr(left);
                self.expr(right);
            }
            Expr::UnaryOp(ast::ExprUnaryOp { op, operand, range: _, node_index: _ }) => {
                self.kind(15);
                self.kind(match op {
                    ast::UnaryOp::Invert => 0,
                    ast::UnaryOp::Not => 1,
                    ast::UnaryOp::UAdd => 2,
                    ast::UnaryOp::USub => 3,
                });
                self.expr(operand);
            }
            Expr::Compare(node) => {
                let ast::ExprCompare { left, ops, comparators, range: _, node_index: _ } = node;
                self.kind(16);
                self.expr(left);
                self.list(ops, |writer, op| writer.comparison(*op));
                self.list(comparators, Self::expr);
            }
            Expr::Lambda(ast::ExprLambda { parameters, body, range: _, node_index: _ }) => {
                self.kind(17);
                self.maybe(parameters.as_deref(), Self::parameters);
                self.expr(body);
            }
            Expr::If(ast::ExprIf { test, body, orelse, range: _, node_index: _ }) => {
                self.kind(18);
                self.expr(test);
                self.expr(body);
                self.expr(orelse);
            }
            Expr::Dict(node) => {
                self.kind(19);
                self.list(&node.items, |writer, ast::DictItem { key, value }| {
                    writer.maybe(key.as_ref(), Self::expr);
                    writer.expr(value);
                });
            }
            Expr::Set(node) => {
                self.kind(20);
                self.list(&node.elts, Self::expr);
            }
            Expr::List(node) => {
                self.kind(21);
                self.list(&node.elts, Self::expr);
            }
            Expr::Tuple(node) => {
                self.kind(22);
                self.list(&node.elts, Self::expr);
            }
            Expr::Subscript(ast::ExprSubscript {
                value,
                slice,
                ctx: _,
                range: _,
                node_index: _,
            }) => {
                self.kind(23);
                self.expr(value);
                self.expr(slice);
            }
            Expr::Slice(ast::ExprSlice { lower, upper, step, range: _, node_index: _ }) => {
                self.kind(24);
                self.maybe(lower.as_deref(), Self::expr);
                self.maybe(upper.as_deref(), Self::expr);
                self.maybe(step.as_deref(), Self::expr);
            }
            Expr::Starred(node) => {
                self.kind(25);
                self.expr(&node.value);
            }
            Expr::ListComp(ast::ExprListComp { elt, generators, range: _, node_index: _ }) => {
                self.kind(26);
                self.expr(elt);
                self.list(generators, Self::clause);
            }
            Expr::SetComp(ast::ExprSetComp { elt, generators, range: _, node_index: _ }) => {
                self.kind(27);
                self.expr(elt);
                self.list(generators, Self::clause);
            }
            Expr::DictComp(node) => {
                let ast::ExprDictComp { key, value, generators, range: _, node_index: _ } = node;
                self.kind(28);
                self.maybe(key.as_deref(), Self::expr);
                self.expr(value);
                self.list(generators, Self::clause);
            }
            Expr::Generator(ast::ExprGenerator {
                elt,
                generators,
                parenthesized: _,
                range: _,
                node_index: _,
            }) => {
                self.kind(29);
                self.expr(elt);
                self.list(generators, Self::clause);
            }
            Expr::Await(node) => {
                self.kind(30);
                self.expr(&node.value);
            }
            Expr::Yield(node) => {
                self.kind(31);
                self.maybe(node.value.as_deref(), Self::expr);
            }
            Expr::YieldFrom(node) => {
                self.kind(32);
                self.expr(&node.value);
            }
            Expr::IpyEscapeCommand(node) => {
                let ast::ExprIpyEscapeCommand { kind, value, range: _, node_index: _ } = node;
                self.kind(33);
                self.kind(*kind as u8);
                self.text(value);
            }
        }
    }

    pub(super) fn operator(&mut self, op: ast::Operator) {
        self.kind(match op {
            ast::Operator::Add => 0,
            ast::Operator::Sub => 1,
            ast::Operator::Mult => 2,
            ast::Operator::MatMult => 3,
            ast::Operator::Div => 4,
            ast::Operator::Mod => 5,
            ast::Operator::Pow => 6,
            ast::Operator::LShift => 7,
            ast::Operator::RShift => 8,
            ast::Operator::BitOr => 9,
            ast::Operator::BitXor => 10,
            ast::Operator::BitAnd => 11,
            ast::Operator::FloorDiv => 12,
        });
    }

    fn comparison(&mut self, op: ast::CmpOp) {
        self.kind(match op {
            ast::CmpOp::Eq => 0,
            ast::CmpOp::NotEq => 1,
            ast::CmpOp::Lt => 2,
            ast::CmpOp::LtE => 3,
            ast::CmpOp::Gt => 4,
            ast::CmpOp::GtE => 5,
            ast::CmpOp::Is => 6,
            ast::CmpOp::IsNot => 7,
            ast::CmpOp::In => 8,
            ast::CmpOp::NotIn => 9,
        });
    }

    pub(super) fn arguments(&mut self, arguments: &ast::Arguments) {
        let ast::Arguments { args, keywords, range: _, node_index: _ } = arguments;
        self.list(args, Self::expr);
        self.list(keywords, |writer, keyword| {
            let ast::Keyword { arg, value, range: _, node_index: _ } = keyword;
            writer.maybe(arg.as_deref(), Self::text);
            writer.expr(value);
        });
    }

    pub(super) fn parameters(&mut self, parameters: &ast::Parameters) {
        let ast::Parameters {
            posonlyargs,
            args,
            vararg,
            kwonlyargs,
            kwarg,
            range: _,
            node_index: _,
        } = parameters;
        self.list(posonlyargs, Self::with_default);
        self.list(args, Self::with_default);
        self.maybe(vararg.as_deref(), Self::parameter);
        self.list(kwonlyargs, Self::with_default);
        self.maybe(kwarg.as_deref(), Self::parameter);
    }

    fn with_default(&mut self, parameter: &ast::ParameterWithDefault) {
        let ast::ParameterWithDefault { parameter, default, range: _, node_index: _ } = parameter;
        self.parameter(parameter);
        self.maybe(default.as_deref(), Self::expr);
    }

    fn parameter(&mut self, parameter: &ast::Parameter) {
        let ast::Parameter { name, annotation, range: _, node_index: _ } = parameter;
        self.text(name);
        self.maybe(annotation.as_deref(), Self::expr);
    }

    fn clause(&mut self, clause: &ast::Comprehension) {
        let ast::Comprehension { target, iter, ifs, is_async, range: _, node_index: _ } = clause;
        self.expr(target);
        self.expr(iter);
        self.list(ifs, Self::expr);
        self.flag(*is_async);
    }
}
