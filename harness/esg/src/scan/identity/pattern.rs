//! Patterns as bytes. Structs are destructured by field, so that no field is forgotten.

use super::Writer;
use crate::scan::parse::ast;

impl Writer<'_> {
    pub(super) fn pattern(&mut self, pattern: &ast::Pattern) {
        match pattern {
            ast::Pattern::MatchValue(ast::PatternMatchValue { value, range: _, node_index: _ }) => {
                self.kind(1);
                self.expr(value);
            }
            ast::Pattern::MatchSingleton(node) => {
                self.kind(2);
                self.kind(match node.value {
                    ast::Singleton::None => 0,
                    ast::Singleton::True => 1,
                    ast::Singleton::False => 2,
                });
            }
            ast::Pattern::MatchSequence(node) => {
                self.kind(3);
                self.list(&node.patterns, Self::pattern);
            }
            ast::Pattern::MatchMapping(node) => {
                let ast::PatternMatchMapping { keys, patterns, rest, range: _, node_index: _ } =
                    node;
                self.kind(4);
                self.list(keys, Self::expr);
                self.list(patterns, Self::pattern);
                self.maybe(rest.as_deref(), Self::text);
            }
            ast::Pattern::MatchClass(node) => {
                let ast::PatternMatchClass { cls, arguments, range: _, node_index: _ } = node;
                let ast::PatternArguments { patterns, keywords, range: _, node_index: _ } =
                    arguments;
                self.kind(5);
                self.expr(cls);
                self.list(patterns, Self::pattern);
                self.list(keywords, |writer, keyword| {
                    let ast::PatternKeyword { attr, pattern, range: _, node_index: _ } = keyword;
                    writer.text(attr);
                    writer.pattern(pattern);
                });
            }
            ast::Pattern::MatchStar(ast::PatternMatchStar { name, range: _, node_index: _ }) => {
                self.kind(6);
                self.maybe(name.as_deref(), Self::text);
            }
            ast::Pattern::MatchAs(node) => {
                let ast::PatternMatchAs { pattern, name, range: _, node_index: _ } = node;
                self.kind(7);
                self.maybe(pattern.as_deref(), Self::pattern);
                self.maybe(name.as_deref(), Self::text);
            }
            ast::Pattern::MatchOr(ast::PatternMatchOr { patterns, range: _, node_index: _ }) => {
                self.kind(8);
                self.list(patterns, Self::pattern);
            }
        }
    }
}
