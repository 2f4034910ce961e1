//! What literals determine.

use super::parse::{Expr, ast};

/// Whether the source of a condition makes it always true or always false.
pub(super) fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::BooleanLiteral(node) => Some(node.value),
        Expr::NoneLiteral(_) => Some(false),
        Expr::StringLiteral(node) => Some(!node.value.is_empty()),
        Expr::NumberLiteral(node) => Some(!is_zero(&node.value)),
        Expr::Name(node) if node.id.as_str() == "__debug__" => Some(true),
        _ => None,
    }
}

fn is_zero(value: &ast::Number) -> bool {
    match value {
        ast::Number::Int(value) => value.as_u64() == Some(0),
        ast::Number::Float(value) => *value == 0.0,
        ast::Number::Complex { real, imag } => *real == 0.0 && *imag == 0.0,
    }
}

/// Whether a division of two numbers surely raises.
pub(super) fn divides_by_zero(node: &ast::ExprBinOp) -> bool {
    use ast::Operator::{Div, FloorDiv, Mod};
    let zero = matches!(&*node.right, Expr::NumberLiteral(right) if is_zero(&right.value));
    zero && matches!(node.op, Div | FloorDiv | Mod) && node.left.is_number_literal_expr()
}

/// Whether an operation makes a number or a string, which hold no objects: one operand is a literal
/// of that kind.
pub(super) fn is_plain(node: &ast::ExprBinOp) -> bool {
    use ast::Operator::{Add, Div, FloorDiv, Mod, Pow, Sub};
    let number = node.left.is_number_literal_expr() || node.right.is_number_literal_expr();
    let text = |one: &Expr| one.is_string_literal_expr() || one.is_f_string_expr();
    match node.op {
        Add => number || text(&node.left) || text(&node.right),
        Mod => number || text(&node.left),
        Sub | Div | FloorDiv | Pow => number,
        _ => false,
    }
}
