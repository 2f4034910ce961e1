//! The commands that another process gives: each talks to the server, and to no service.

use examples::shown;
use examples::support::ApproveRefund;
use harness::Sessions;
use harness::approval::Approval;
use harness::id::InterruptId;
use harness::loops::Conversation;
use harness_store::restate::RestateStore;

use super::{Do, Fallible, Options};

pub(super) async fn run(options: &Options, command: Do) -> Fallible<()> {
    let tickets = options.tickets()?;
    match command {
        Do::Start { ticket, message } => {
            // The message once, also if this is sent again.
            tickets.start(&ticket, &message, &Conversation::say(message.clone())).await?;
            println!("the server has ticket {}", shown(&ticket));
            Ok(())
        }
        Do::List => {
            for row in Sessions::new(tickets).pending_interrupts().await?.rows {
                if let Ok(refund) = row.interrupt.as_question::<ApproveRefund>() {
                    let ApproveRefund { order, cents } = refund.question;
                    println!("{} {} {cents} cents", row.session, shown(&order));
                }
            }
            Ok(())
        }
        Do::Approve { ticket, order } => {
            decide(&tickets, &ticket, &order, Approval::approve()).await
        }
        Do::Reject { ticket, order, reason } => {
            decide(&tickets, &ticket, &order, Approval::reject_because(reason)).await
        }
        Do::Serve { .. } => Ok(()),
    }
}

/// Answers the question about an order.
async fn decide(
    tickets: &RestateStore,
    ticket: &str,
    order: &str,
    answer: Approval,
) -> Fallible<()> {
    let Some(asked) = refund_of(tickets, ticket, order).await? else {
        return Err(format!("no refund of `{order}` waits for an approval").into());
    };
    let answer = serde_json::to_value(answer)?;
    let settled = tickets.answer(ticket, asked, answer, Some("operator")).await?;
    println!("{} is decided; the ticket is {:?}", shown(order), settled.phase);
    Ok(())
}

/// The question about an order, if it is open.
pub(super) async fn refund_of(
    tickets: &RestateStore,
    ticket: &str,
    order: &str,
) -> Fallible<Option<InterruptId>> {
    let questions = match Sessions::new(tickets.clone()).status(ticket).await {
        Ok(status) => status.questions,
        // It is not there before its first invocation has ended.
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let about = |asked: &harness::Interrupt| {
        asked.as_question::<ApproveRefund>().is_ok_and(|refund| refund.question.order == order)
    };
    Ok(questions.into_iter().find(about).map(|asked| asked.id))
}
