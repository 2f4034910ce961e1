use crate::llm::{Delta, Reply};

/// The parts of a reply: text and reasoning in words, arguments in halves.
pub(super) fn parts(reply: &Reply) -> Vec<Delta> {
    Delta::of(reply).into_iter().flat_map(split).collect()
}

fn split(delta: Delta) -> Vec<Delta> {
    match delta {
        Delta::Text(text) => words(&text).map(Delta::Text).collect(),
        Delta::Reasoning(text) => words(&text).map(Delta::Reasoning).collect(),
        Delta::CallArguments { index, fragment } => {
            let middle = fragment.floor_char_boundary(fragment.len() / 2);
            let (first, second) = fragment.split_at(middle);
            [first, second]
                .into_iter()
                .map(|part| Delta::CallArguments { index, fragment: part.to_owned() })
                .collect()
        }
        whole => vec![whole],
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}
