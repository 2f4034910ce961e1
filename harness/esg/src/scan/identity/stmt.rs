//! Statements as bytes. Structs are destructured by field, so that no field is forgotten.

use super::Writer;
use crate::scan::parse::{Stmt, ast};

impl Writer<'_> {
    fn body(&mut self, body: &[Stmt]) {
        self.list(body, Self::stmt);
    }

    pub(super) fn stmt(&mut self, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(node) => self.function(node),
            Stmt::ClassDef(node) => self.class(node),
            Stmt::Return(ast::StmtReturn { value, range: _, node_index: _ }) => {
                self.kind(3);
                self.maybe(value.as_deref(), Self::expr);
            }
            Stmt::Delete(ast::StmtDelete { targets, range: _, node_index: _ }) => {
                self.kind(4);
                self.list(targets, Self::expr);
            }
            Stmt::TypeAlias(node) => {
                let ast::StmtTypeAlias { name, type_params, value, range: _, node_index: _ } = node;
                self.kind(5);
                self.expr(name);
                self.type_params(type_params.as_deref());
                self.expr(value);
            }
            Stmt::Assign(ast::StmtAssign { targets, value, range: _, node_index: _ }) => {
                self.kind(6);
                self.list(targets, Self::expr);
                self.expr(value);
            }
            Stmt::AugAssign(ast::StmtAugAssign { target, op, value, range: _, node_index: _ }) => {
                self.kind(7);
                self.expr(target);
                self.operator(*op);
                self.expr(value);
            }
            Stmt::AnnAssign(node) => {
                let ast::StmtAnnAssign {
                    target,
                    annotation,
                    value,
                    simple,
                    range: _,
                    node_index: _,
                } = node;
                self.kind(8);
                self.expr(target);
                self.expr(annotation);
                self.maybe(value.as_deref(), Self::expr);
                self.flag(*simple);
            }
            Stmt::For(node) => {
                let ast::StmtFor { is_async, target, iter, body, orelse, range: _, node_index: _ } =
                    node;
                self.kind(9);
                self.flag(*is_async);
                self.expr(target);
                self.expr(iter);
                self.body(body);
                self.body(orelse);
            }
            Stmt::While(ast::StmtWhile { test, body, orelse, range: _, node_index: _ }) => {
                self.kind(10);
                self.expr(test);
                self.body(body);
                self.body(orelse);
            }
            Stmt::If(ast::StmtIf { test, body, elif_else_clauses, range: _, node_index: _ }) => {
                self.kind(11);
                self.expr(test);
                self.body(body);
                self.list(elif_else_clauses, |writer, clause| {
                    let ast::ElifElseClause { test, body, range: _, node_index: _ } = clause;
                    writer.maybe(test.as_ref(), Self::expr);
                    writer.body(body);
                });
            }
            Stmt::With(ast::StmtWith { is_async, items, body, range: _, node_index: _ }) => {
                self.kind(12);
                self.flag(*is_async);
                self.list(items, |writer, item| {
                    let ast::WithItem { context_expr, optional_vars, range: _, node_index: _ } =
                        item;
                    writer.expr(context_expr);
                    writer.maybe(optional_vars.as_deref(), Self::expr);
                });
                self.body(body);
            }
            Stmt::Match(ast::StmtMatch { subject, cases, range: _, node_index: _ }) => {
                self.kind(13);
                self.expr(subject);
                self.list(cases, |writer, case| {
                    let ast::MatchCase { pattern, guard, body, range: _, node_index: _ } = case;
                    writer.pattern(pattern);
                    writer.maybe(guard.as_deref(), Self::expr);
                    writer.body(body);
                });
            }
            Stmt::Raise(ast::StmtRaise { exc, cause, range: _, node_index: _ }) => {
                self.kind(14);
                self.maybe(exc.as_deref(), Self::expr);
                self.maybe(cause.as_deref(), Self::expr);
            }
            Stmt::Try(node) => self.try_statement(node),
            Stmt::Assert(ast::StmtAssert { test, msg, range: _, node_index: _ }) => {
                self.kind(16);
                self.expr(test);
                self.maybe(msg.as_deref(), Self::expr);
            }
            Stmt::Import(ast::StmtImport { names, is_lazy, range: _, node_index: _ }) => {
                self.kind(17);
                self.list(names, Self::alias);
                self.flag(*is_lazy);
            }
            Stmt::ImportFrom(node) => {
                let ast::StmtImportFrom { module, names, level, is_lazy, range: _, node_index: _ } =
                    node;
                self.kind(18);
                self.maybe(module.as_deref(), Self::text);
                self.list(names, Self::alias);
                self.number(u64::from(*level));
                self.flag(*is_lazy);
            }
            Stmt::Global(ast::StmtGlobal { names, range: _, node_index: _ }) => {
                self.kind(19);
                self.list(names, |writer, name| writer.text(name));
            }
            Stmt::Nonlocal(ast::StmtNonlocal { names, range: _, node_index: _ }) => {
                self.kind(20);
                self.list(names, |writer, name| writer.text(name));
            }
            Stmt::Expr(ast::StmtExpr { value, range: _, node_index: _ }) => {
                self.kind(21);
                self.expr(value);
            }
            Stmt::Pass(_) => self.kind(22),
            Stmt::Break(_) => self.kind(23),
            Stmt::Continue(_) => self.kind(24),
            Stmt::IpyEscapeCommand(node) => {
                let ast::StmtIpyEscapeCommand { kind, value, range: _, node_index: _ } = node;
                self.kind(25);
                self.kind(*kind as u8);
                self.text(value);
            }
        }
    }

    fn function(&mut self, node: &ast::StmtFunctionDef) {
        let ast::StmtFunctionDef {
            is_async,
            decorator_list,
            name,
            type_params,
            parameters,
            returns,
            body,
            range: _,
            node_index: _,
        } = node;
        self.kind(1);
        self.flag(*is_async);
        self.decorators(decorator_list);
        self.text(name);
        self.type_params(type_params.as_deref());
        self.parameters(parameters);
        self.maybe(returns.as_deref(), Self::expr);
        self.body(body);
    }

    fn class(&mut self, node: &ast::StmtClassDef) {
        let ast::StmtClassDef {
            decorator_list,
            name,
            type_params,
            arguments,
            body,
            range: _,
            node_index: _,
        } = node;
        self.kind(2);
        self.decorators(decorator_list);
        self.text(name);
        self.type_params(type_params.as_deref());
        // `class A():` is `class A:`.
        match arguments {
            Some(arguments) => self.arguments(arguments),
            None => {
                self.count(0);
                self.count(0);
            }
        }
        self.body(body);
    }

    fn decorators(&mut self, decorators: &[ast::Decorator]) {
        self.list(decorators, |writer, decorator| writer.expr(&decorator.expression));
    }

    fn try_statement(&mut self, node: &ast::StmtTry) {
        let ast::StmtTry { body, handlers, orelse, finalbody, is_star, range: _, node_index: _ } =
            node;
        self.kind(15);
        self.body(body);
        self.list(handlers, |writer, handler| {
            let ast::ExceptHandler::ExceptHandler(handler) = handler;
            let ast::ExceptHandlerExceptHandler { type_, name, body, range: _, node_index: _ } =
                handler;
            writer.maybe(type_.as_deref(), Self::expr);
            writer.maybe(name.as_deref(), Self::text);
            writer.body(body);
        });
        self.body(orelse);
        self.body(finalbody);
        self.flag(*is_star);
    }

    fn alias(&mut self, alias: &ast::Alias) {
        let ast::Alias { name, asname, range: _, node_index: _ } = alias;
        self.text(name);
        self.maybe(asname.as_deref(), Self::text);
    }

    fn type_params(&mut self, params: Option<&ast::TypeParams>) {
        self.maybe(params, |writer, params| {
            writer.list(&params.type_params, |writer, param| match param {
                ast::TypeParam::TypeVar(param) => {
                    let ast::TypeParamTypeVar { name, bound, default, range: _, node_index: _ } =
                        param;
                    writer.kind(1);
                    writer.text(name);
                    writer.maybe(bound.as_deref(), Self::expr);
                    writer.maybe(default.as_deref(), Self::expr);
                }
                ast::TypeParam::ParamSpec(param) => {
                    let ast::TypeParamParamSpec { name, default, range: _, node_index: _ } = param;
                    writer.kind(2);
                    writer.text(name);
                    writer.maybe(default.as_deref(), Self::expr);
                }
                ast::TypeParam::TypeVarTuple(param) => {
                    let ast::TypeParamTypeVarTuple { name, default, range: _, node_index: _ } =
                        param;
                    writer.kind(3);
                    writer.text(name);
                    writer.maybe(default.as_deref(), Self::expr);
                }
            });
        });
    }
}
