//! A whole loop, declared with both sets of types: drawings and runs are equal.

use harness::observe::Recorder;
use harness::prelude::*;
use harness::{Answers, RunError};

/// Declares the loop with the types of one module and runs it past its gate. Returns the drawing,
/// followed by the lines of its events.
macro_rules! declared {
    ($types:ident, $fixed:expr, $runtime:expr) => {{
        use super::$types::{ApproveCall, Chat, Ctx, Next, Step};

        async fn think(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
            let line = format!("{} of {} by {}", chat.turns, cx.size, cx.model);
            Ok(Chat::update().lines([line]).turns(1))
        }

        async fn ask(chat: View<Chat>, _: Cx<Ctx>) -> Result<ApproveCall, StepError> {
            Ok(ApproveCall { tool: format!("tool {}", chat.turns) })
        }

        async fn answered(
            _: View<Chat>,
            _: Cx<Ctx>,
            said: Answered<ApproveCall>,
        ) -> StepResult<Chat> {
            Ok(Chat::update().answer(Some(format!("{}: {:?}", said.question.tool, said.answer))))
        }

        fn next(chat: &Chat) -> Next {
            if chat.turns < 2 { Next::CallTools } else { Next::Answer }
        }

        async fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
            let seen = Recorder::default();
            let harness = Harness::<Ctx, Chat>::builder("twin")
                .provide($fixed)
                .start(Step::Think)
                .steps(|define, step| match step {
                    Step::Think => define.run(think).route(next, |next| match next {
                        Next::CallTools => to(Step::Act),
                        Next::Answer => end(),
                    }),
                    Step::Act => {
                        define.ask(ask).answer(answered).at_most(9, Step::Think).then(Step::Think)
                    }
                })
                .build()?
                .observe(seen.clone());
            let mut lines = vec![harness.graph().to_mermaid()];
            let agent = harness.agent("twin", ());
            let input = Chat::update().lines(["hi".to_owned()]);
            let Outcome::Interrupted(waiting) = agent.run(input, $runtime).session("s").await?
            else {
                panic!("it asks");
            };
            let question = &waiting.questions[0];
            lines.push(format!(
                "{} {} {}",
                question.name, question.question, question.answer_schema
            ));
            let refused: Result<_, RunError> = agent
                .resume(&waiting, Answers::json(question.id.clone(), 7.into()), $runtime)
                .await;
            lines.push(refused.err().map_or_else(String::new, |error| error.to_string()));
            let answers = waiting.pending::<ApproveCall>()?.answer(Some(true)).by("sam");
            let ended = agent.resume(&waiting, answers, $runtime).await?.ended()?;
            lines.push(format!("{:?} {:?} {}", ended.state, ended.by::<Next>(), ended.steps));
            lines.extend(seen.lines());
            // Question ids contain a secret of their session.
            let id = question.id.as_str();
            Ok(lines.into_iter().map(|line| line.replace(id, "ID")).collect())
        }

        run().await.unwrap()
    }};
}

#[tokio::test]
async fn a_whole_loop() {
    let derived = declared!(
        derived,
        Ctx::fixed().size(3).tools(vec![1]).build(),
        Ctx::runtime().model("m".into()).build()
    );
    let by_hand = declared!(by_hand, (vec![1], 3), Box::<str>::from("m"));
    assert_eq!(derived, by_hand);
    assert!(derived.last().is_some_and(|line| line == "run ended by Answer"), "{derived:#?}");
    assert!(derived[2].contains("does not fit"), "{}", derived[2]);
}
