//! A support agent: it refunds an order and writes to the customer, each only after a person has
//! approved it. Every command is a process of its own.
//!
//! ```text
//! support DIR start TICKET ORDER CENTS      # a new ticket
//! support DIR waiting                       # what waits for an approval
//! support DIR answer TICKET yes|no          # decides, and resumes the ticket
//! ```

use std::path::{Path, PathBuf};

use harness::prelude::*;
use harness_store::FileStore;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Ticket {
    order: String,
    cents: u64,
    receipt: Option<String>,
    reply: Option<String>,
    #[state(reduce = append)]
    decisions: Vec<String>,
}

/// What the steps use.
#[derive(Context)]
struct Office {
    #[slot(required)]
    dir: PathBuf,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct ApproveRefund {
    order: String,
    cents: u64,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct ApproveReply {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Decide,
    Refund,
    Write,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Decision {
    Approved,
    Refused,
}

fn support() -> Result<Harness<Office, Ticket>, harness::BuildError> {
    Harness::<Office, Ticket>::builder("support")
        .start(Step::Decide)
        .steps(|define, step| match step {
            Step::Decide => define
                .ask(|ticket: View<Ticket>, _| async move {
                    Ok(ApproveRefund { order: ticket.order.clone(), cents: ticket.cents })
                })
                .answer(|_, _, said| async move {
                    let word = if said.answer { "refund" } else { "no refund" };
                    let by = said.by.unwrap_or_default();
                    Ok(Ticket::update().decisions([format!("{word}, by {by}")]))
                })
                .route(decided, |decision| match decision {
                    Decision::Approved => to(Step::Refund),
                    Decision::Refused => to(Step::Write),
                }),
            Step::Refund => define.run(refund).then(Step::Write),
            Step::Write => define.run(write).end(),
        })
        .build()
}

fn decided(ticket: &Ticket) -> Decision {
    match ticket.decisions.last() {
        Some(last) if last.starts_with("refund") => Decision::Approved,
        _ => Decision::Refused,
    }
}

/// Pays the money back. The effect is recorded: no retry, crash or answer repeats it.
async fn refund(ticket: View<Ticket>, cx: Cx<Office>) -> StepResult<Ticket> {
    let line = format!("{} {} cents", ticket.order, ticket.cents);
    let file = cx.dir.join("refunds.txt");
    let receipt = cx.once("refund", async move || append(&file, &line)).at_most_once().await?;
    Ok(Ticket::update().receipt(receipt))
}

/// Asks in the middle of the step whether the reply can be sent.
async fn write(ticket: View<Ticket>, cx: Cx<Office>) -> StepResult<Ticket> {
    let text = match &ticket.receipt {
        Some(receipt) => format!("Your refund for {} is on its way ({receipt}).", ticket.order),
        None => format!("We do not refund {}.", ticket.order),
    };
    let question = ApproveReply { text: text.clone() };
    if !cx.ask("reply", question).await? {
        return Ok(Ticket::update().decisions(["no reply".to_owned()]));
    }
    let (reply, file) = (text.clone(), cx.dir.join("replies.txt"));
    cx.once("send", async move || append(&file, &reply)).at_most_once().await?;
    Ok(Ticket::update().reply(text))
}

/// The world outside: a line in a file.
fn append(file: &Path, line: &str) -> Result<String, StepError> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(file, "{line}")?;
    Ok(format!("r-{}", line.len()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (dir, command) = args.split_first().ok_or("usage: support DIR start|waiting|answer ..")?;
    let store = FileStore::open(Path::new(dir).join("sessions")).await?;
    let office = Office::required().dir(PathBuf::from(dir)).build();
    let agent = support()?.agent("support", office).store(store.clone());
    let sessions = harness::Sessions::new(store);
    let outcome = match *command {
        ["start", ticket, order, cents] => {
            let input = Ticket::update().order(order).cents(cents.parse::<u64>()?);
            agent.run(input, ()).session(ticket).input_id(ticket).await?
        }
        ["waiting"] => {
            for row in sessions.pending_interrupts().await?.rows {
                println!("{} {} {}", row.session, row.interrupt.name, row.interrupt.question);
            }
            return Ok(());
        }
        ["answer", ticket, word @ ("yes" | "no")] => {
            let status = sessions.status(ticket).await?;
            let open = status.questions.first().ok_or("nothing waits for an answer")?;
            let answer = Answers::json(open.id.clone(), (word == "yes").into()).by("sam");
            agent.resume(ticket, answer, ()).await?
        }
        _ => return Err("usage: support DIR start|waiting|answer ..".into()),
    };
    match outcome {
        Outcome::Ended(ended) => println!("done: {}", ended.state.decisions.join("; ")),
        Outcome::Interrupted(_) => println!("waits for an approval"),
        other => println!("{other:?}"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::testing;

    fn ticket() -> TicketUpdate {
        Ticket::update().order("order-9").cents(4200_u64)
    }

    fn agent(dir: &Path) -> Agent<Office, Ticket> {
        support().unwrap().agent("support", Office::required().dir(dir.to_owned()).build())
    }

    #[tokio::test]
    async fn an_approved_refund_is_paid_before_the_reply() {
        let dir = tempfile::tempdir().unwrap();
        let test = testing::run(&agent(dir.path()), ticket())
            .answer(Step::Decide, true)
            .answer("reply", true)
            .await
            .unwrap();
        assert_eq!(test.steps(), ["Decide", "Refund", "Write"]);
        assert_eq!(test.questions::<ApproveRefund>()[0].cents, 4200);
        assert!(test.ended().unwrap().state.reply.unwrap().contains("on its way"));
    }

    #[tokio::test]
    async fn a_refused_refund_is_not_paid() {
        let dir = tempfile::tempdir().unwrap();
        let test = testing::run(&agent(dir.path()), ticket())
            .answer(Step::Decide, false)
            .answer("reply", true)
            .await
            .unwrap();
        assert_eq!(test.steps(), ["Decide", "Write"]);
        assert!(!dir.path().join("refunds.txt").exists());
    }

    #[tokio::test]
    async fn a_reply_is_not_sent_without_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let ticket = Ticket { order: "order-9".to_owned(), ..Ticket::default() };
        let office = Office { dir: dir.path().to_owned() };
        let test = testing::step(write).slots(office).state(ticket).await.unwrap();
        let asked = test.question::<ApproveReply>("reply").unwrap();
        assert_eq!(asked.text, "We do not refund order-9.");
        assert!(test.effects().is_empty());
    }
}
