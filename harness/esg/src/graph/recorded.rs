//! A graph without a worker.
use crate::blobs::Blobs;
use crate::exec::{
    Caps, ExecError, Executor, KillHandle, Ran, RunStep, Swept, Sync, Synced, Value,
};
use crate::graph::CodeGraph;
use crate::ledger::Ledger;

impl CodeGraph {
    /// A graph without a worker, for what a ledger alone answers: [`plan`](Self::plan),
    /// [`edges`](Self::edges), [`credit`](Self::credit), drawings. What needs a worker or a value fails.
    ///
    /// The plan is that of a worker like the last one. Files outside of scratch are where the worker is, so
    /// they count as unchanged.
    ///
    /// ```
    /// use harness_esg::{Change, CodeGraph, Ledger, Record};
    ///
    /// let ledger = Ledger::fold(&[Record::Edited(Change::added("load", "rows = [3, 1]").into())])?;
    /// let mut graph = CodeGraph::recorded(ledger);
    /// assert_eq!(graph.plan().to_string(), "load: it never ran\n");
    /// assert!(graph.replay().is_err());
    /// # Ok::<(), harness_esg::ProgramError>(())
    /// ```
    #[must_use]
    pub fn recorded(ledger: Ledger) -> Self {
        let last = ledger.executions().last();
        let kind = last.map(|execution| execution.executor.to_string()).unwrap_or_default();
        let mut graph = Self::resume(ledger, Absent { kind }, Blobs::memory());
        graph.engine.elsewhere = true;
        graph
    }
}

/// In place of a worker that is not there.
#[derive(Debug)]
struct Absent {
    kind: String,
}

fn absent() -> ExecError {
    ExecError::new("the graph has no worker (make it with `CodeGraph::resume` to run steps)")
}

impl Executor for Absent {
    fn fingerprint(&self) -> &str {
        &self.kind
    }

    fn caps(&self) -> Caps {
        Caps::new(None).restores(false).files(false).interrupts(false).twins(false)
    }

    fn fresh(&mut self) -> Result<(), ExecError> {
        Err(absent())
    }

    fn sync(&mut self, _: &Sync) -> Result<Synced, ExecError> {
        Err(absent())
    }

    fn run(&mut self, _: &RunStep<'_>) -> Result<Ran, ExecError> {
        Err(absent())
    }

    fn sweep(&mut self) -> Result<Swept, ExecError> {
        Err(absent())
    }

    fn value(&mut self, _: &str) -> Result<Value, ExecError> {
        Err(absent())
    }

    fn kill_handle(&self) -> KillHandle {
        KillHandle::new(|| {})
    }

    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        Err(absent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Edit, Program, ProgramError};
    use crate::testing::TinyWorker;

    type Edits = fn(&mut Edit<'_>) -> Result<(), ProgramError>;

    #[test]
    fn the_plan_and_the_edges_are_those_of_the_graph_with_its_worker() {
        let script =
            "# %% load\nxs = [3, 1]\n# %% other\ny = 1\n# %% sum\nn = sum(xs)\n# %% show\nprint(n)";
        let program = Program::from_script(script).unwrap();
        let mut graph = CodeGraph::new(program, TinyWorker::new(), Blobs::memory());
        let mut seen = Vec::new();
        let mut same = |graph: &CodeGraph| {
            let recorded = CodeGraph::recorded(graph.ledger().clone());
            assert_eq!(recorded.plan(), graph.plan());
            assert!(recorded.edges().iter().eq(graph.edges().iter()));
            seen.push(recorded.plan().steps().count());
        };
        same(&graph);
        graph.replay().unwrap();
        same(&graph);
        let edits: [Edits; 3] = [
            |it| it.replace("load", "xs = [3, 2]").map(drop),
            |it| it.replace("other", "y = 2").map(drop),
            |it| it.remove("sum"),
        ];
        for edit in edits {
            graph.edit(edit).unwrap();
            same(&graph);
            graph.replay().unwrap();
            same(&graph);
        }
        graph.invalidate("other").unwrap();
        same(&graph);
        assert_eq!(seen, [4, 0, 3, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn what_needs_a_worker_fails() {
        let program = Program::from_script("# %% load\nxs = [3, 1]").unwrap();
        let mut graph = CodeGraph::recorded(program.into());
        let error = graph.replay().unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("has no worker"), "{cause}");
        assert!(graph.kill_handle().is_err() && graph.value("xs").is_err());
    }
}
