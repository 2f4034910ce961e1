//! The step that asks a model for the program.
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use harness_esg::{Program, Provenance, ProvenanceKind};

use super::prompt::{WRITE, refused};
use super::state::{Code, CodeChange, Coded, Reviewed, program_of};
use crate::context::Context;
use crate::llm::{Llm, Request, Transcript, user};
use crate::step::{Cx, Handler, ResultExt as _, StepError, StepResult, View};

/// How often a model is asked for one program.
const ROUNDS: u32 = 3;

type ModelOf<C> = Box<dyn Fn(&C) -> Arc<dyn Llm> + Send + Sync>;
type TaskOf<S> = Box<dyn Fn(&S) -> String + Send + Sync>;

/// A step that asks a model for the program, made by [`generate`].
pub struct Generate<C, S> {
    model: ModelOf<C>,
    task: TaskOf<S>,
}

/// Asks a model for the program that does a task, or for the next version of it: the model sees the task, the
/// program so far and, if a person [rejected](super::review()) it, the comment. Code steps that
/// stay the same keep their executions.
///
/// Each reply is recorded before it is read, so that a crash does not ask again.
///
/// A reply without a program is refused: the model receives the reason, three times at most. Then the step
/// fails with [`NoProgram`], without a retry.
pub fn generate<C: Context, S: Coded>(
    model: impl Fn(&C) -> Arc<dyn Llm> + Send + Sync + 'static,
    task: impl Fn(&S) -> String + Send + Sync + 'static,
) -> Generate<C, S> {
    Generate { model: Box::new(model), task: Box::new(task) }
}

/// A model returned no usable program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model returned no program in {rounds} rounds: the last reply was refused: {why}")]
#[non_exhaustive]
pub struct NoProgram {
    /// How often it was asked.
    pub rounds: u32,
    /// Why the last reply cannot be used.
    pub why: String,
}

#[async_trait]
impl<C: Context, S: Coded> Handler<C, S> for Generate<C, S> {
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S> {
        let code = program_of(&*state);
        let model = (self.model)(&cx);
        let asked = question(&(self.task)(&state), code).fatal()?;
        let mut talk = Transcript::from_iter([user(asked)]);
        let mut why = String::new();
        for round in 1..=ROUNDS {
            let request = Request::new(talk.sealed()?).system(WRITE);
            let call = format!("{}#{round}", cx.op_id());
            let calling = cx.llm(&model).with_id(call.as_str()).recorded(format!("write/{round}"));
            let reply = calling.request(request).await?;
            let text = reply.text().unwrap_or_default();
            match changes(code, &text, &provenance(&cx, &call)) {
                Ok(mut changes) => {
                    changes.push(CodeChange::Diagnosed(None));
                    changes.push(CodeChange::Reviewed(None));
                    return Ok(S::change(S::update(), changes));
                }
                Err(reason) => why = reason,
            }
            // Not the reply itself: it may hold tool calls, which nothing answers.
            talk.push(user(refused(&text, &why)));
        }
        Err(NoProgram { rounds: ROUNDS, why }).fatal()
    }
}

fn provenance<C: Context>(cx: &Cx<C>, call: &str) -> Provenance {
    Provenance::new(ProvenanceKind::Generated)
        .agent(cx.agent_id().as_str())
        .run(cx.run_id().as_ref())
        .call(call)
}

fn question(task: &str, code: &Code) -> Result<String, StepError> {
    let mut text = format!("The task:\n{task}\n");
    for input in code.program().inputs() {
        let _ = writeln!(text, "The variable `{}` is bound before the first step.", input.name);
    }
    if !code.program().is_empty() {
        let script = code.program().to_script()?;
        let _ = write!(text, "\nThe program so far:\n```python\n{script}\n```\n");
    }
    if let Some(Reviewed::Rejected { comment }) = code.reviewed() {
        let _ = write!(text, "\nA person rejected it: {comment}\n");
    }
    if let Some(diagnosis) = code.diagnosis() {
        let _ = write!(text, "\nIt fails:\n{diagnosis}\n");
    }
    Ok(text)
}

/// What a reply changes, or why it cannot be used.
fn changes(code: &Code, text: &str, provenance: &Provenance) -> Result<Vec<CodeChange>, String> {
    let script = fenced(text).ok_or("it has no block of Python in a fence")?;
    let program = Program::from_script(&script).map_err(|error| error.to_string())?;
    if program.is_empty() {
        return Err("its program has no step".into());
    }
    for step in program.steps() {
        if let Some(error) = step.scan.errors.first() {
            let at = format!("line {}, column {}", error.line, error.column);
            return Err(format!("step `{}` does not parse: {} ({at})", step.id, error.message));
        }
    }
    let changes = code.following(&program, provenance).map_err(|error| error.to_string())?;
    match changes.is_empty() {
        true => Err("it is the program that is there already".into()),
        false => Ok(changes),
    }
}

/// The last closed fence of a reply that is not in another language.
fn fenced(text: &str) -> Option<String> {
    let (mut found, mut open) = (None, None);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => {
                let (python, body) = open.take().unwrap_or((false, String::new()));
                found = if python { Some(body) } else { found };
            }
            (Some(language), None) => {
                let python = matches!(language.trim(), "" | "py" | "python" | "python3");
                open = Some((python, String::new()));
            }
            (None, Some((_, body))) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

impl<C, S> fmt::Debug for Generate<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generate")
    }
}
