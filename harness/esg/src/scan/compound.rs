//! Statements with several exits: `with`, `try`, `match`.

use super::flow::Flow;
use super::parse::{ast, numbered};
use super::state::Path;
use super::value::{EMPTY, Reach, Val};

impl<'a> Flow<'a> {
    pub(super) fn with_statement(
        &mut self,
        items: &'a [ast::WithItem],
        body: &'a [super::parse::Stmt],
    ) {
        let Some((first, rest)) = items.split_first() else {
            return self.body(body);
        };
        let manager = self.eval(&first.context_expr);
        if self.state.dead {
            return;
        }
        let entered = self.values.through(manager, Reach::Deep);
        let entered = self.union(manager, entered);
        self.run(manager);
        if let Some(target) = &first.optional_vars {
            self.bind(target, entered);
        }
        // The context manager may suppress an exception of the body.
        let mark = self.state.mark();
        let since = self.state.watch();
        self.with_statement(rest, body);
        let end = self.state.take(mark);
        let raised = self.state.raised(since, &mut self.values);
        self.state.unwatch();
        self.state.join(&[end, raised], &mut self.values);
    }

    pub(super) fn try_statement(&mut self, node: &'a ast::StmtTry) {
        let mark = self.state.mark();
        let since = self.state.watch();
        let jumps = self.jumps();
        self.body(&node.body);
        let end = self.state.take(mark);
        let raised = self.state.raised(since, &mut self.values);
        let mut paths = Vec::new();
        if !node.handlers.is_empty() {
            let mut unmatched = raised;
            for handler in &node.handlers {
                let ast::ExceptHandler::ExceptHandler(handler) = handler;
                self.state.follow(&unmatched);
                if let Some(kind) = &handler.type_ {
                    self.eval(kind);
                }
                unmatched = self.state.peek(mark);
                let name = handler.name.as_ref().and(numbered(&handler.node_index));
                if let Some(name) = name {
                    self.store(name, EMPTY);
                }
                self.body(&handler.body);
                if let Some(name) = name {
                    // The name is unbound at every exit of the handler.
                    let dead = std::mem::take(&mut self.state.dead);
                    self.unbind(name, false);
                    self.state.dead = dead;
                }
                paths.push(self.state.take(mark));
            }
        }
        self.state.follow(&end);
        self.body(&node.orelse);
        paths.push(self.state.take(mark));
        if !node.finalbody.is_empty() {
            // The `finally` runs at every exit of the rest.
            let anyhow = self.state.raised(since, &mut self.values);
            self.state.follow(&anyhow);
            self.body(&node.finalbody);
            let last = self.state.take(mark);
            self.leave_through(jumps, &last);
            if last.dead {
                paths = vec![Path::dead()];
            } else if !paths.iter().all(|path| path.dead) && !last.changes().is_empty() {
                let path = self.state.joined(&paths, &mut self.values);
                self.state.follow(&path);
                if self.coarse.on {
                    // Its effects on any path apply to this one.
                    self.state.follow(&last);
                } else {
                    self.body(&node.finalbody);
                }
                paths = vec![self.state.take(mark)];
            }
        }
        self.state.unwatch();
        self.state.join(&paths, &mut self.values);
    }

    /// How many jumps were recorded so far.
    fn jumps(&self) -> (usize, usize, usize) {
        let around = self.loops.last();
        let counts = around.map_or((0, 0), |around| (around.breaks.len(), around.ends.len()));
        (counts.0, counts.1, self.frame.returns.len())
    }

    /// Applies the changes of a `finally` to every jump since then.
    fn leave_through(&mut self, since: (usize, usize, usize), last: &Path) {
        let mut jumped: Vec<&mut Path> = Vec::new();
        if let Some(around) = self.loops.last_mut() {
            jumped.extend(around.breaks.iter_mut().skip(since.0));
            jumped.extend(around.ends.iter_mut().skip(since.1));
        }
        jumped.extend(self.frame.returns.iter_mut().skip(since.2));
        for path in jumped {
            let dead = path.dead;
            path.dead = false;
            let both = [std::mem::take(path), last.alive()];
            *path = self.state.joined(&both, &mut self.values);
            path.dead = dead || last.dead;
        }
    }

    pub(super) fn match_statement(&mut self, node: &'a ast::StmtMatch) {
        let subject = self.eval(&node.subject);
        if self.state.dead {
            return;
        }
        let start = self.state.mark();
        let mut paths = Vec::new();
        for case in &node.cases {
            if self.state.dead {
                break;
            }
            let mark = self.state.mark();
            self.pattern(&case.pattern, subject);
            let (yes, no) = match &case.guard {
                Some(guard) => self.condition(guard, mark),
                None => (self.state.take(mark), Path::dead()),
            };
            let refutable = !case.pattern.is_irrefutable();
            let missed = if refutable { Path::default() } else { Path::dead() };
            // The body is evaluated from the start state, with the effects of earlier guards.
            let before = self.state.peek(start);
            self.state.follow(&yes);
            self.body(&case.body);
            paths.push(self.state.take(start));
            self.state.follow(&before);
            self.state.join(&[no, missed], &mut self.values);
        }
        paths.push(self.state.take(start));
        self.state.join(&paths, &mut self.values);
    }

    fn pattern(&mut self, pattern: &'a ast::Pattern, subject: Val) {
        let inside = self.values.inside(subject);
        match pattern {
            ast::Pattern::MatchValue(node) => {
                self.eval(&node.value);
            }
            ast::Pattern::MatchSingleton(_) => {}
            ast::Pattern::MatchSequence(node) => {
                for one in &node.patterns {
                    self.pattern(one, inside);
                }
            }
            ast::Pattern::MatchMapping(node) => {
                for key in &node.keys {
                    self.eval(key);
                }
                for one in &node.patterns {
                    self.pattern(one, inside);
                }
                self.captured(node.rest.as_ref(), &node.node_index, inside);
            }
            ast::Pattern::MatchClass(node) => {
                self.eval(&node.cls);
                for one in &node.arguments.patterns {
                    self.pattern(one, inside);
                }
                for one in &node.arguments.keywords {
                    self.pattern(&one.pattern, inside);
                }
            }
            ast::Pattern::MatchStar(node) => {
                let rest = self.values.holding(subject);
                self.captured(node.name.as_ref(), &node.node_index, rest);
            }
            ast::Pattern::MatchAs(node) => {
                if let Some(inner) = &node.pattern {
                    self.pattern(inner, subject);
                }
                self.captured(node.name.as_ref(), &node.node_index, subject);
            }
            ast::Pattern::MatchOr(node) => {
                let mark = self.state.mark();
                let mut paths = Vec::new();
                for one in &node.patterns {
                    self.pattern(one, subject);
                    paths.push(self.state.take(mark));
                }
                self.state.join(&paths, &mut self.values);
            }
        }
    }

    fn captured(&mut self, name: Option<&ast::Identifier>, node: &ast::AtomicNodeIndex, val: Val) {
        if let (Some(_), Some(symbol)) = (name, numbered(node)) {
            self.store(symbol, val);
        }
    }
}
