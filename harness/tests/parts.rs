//! The change types of provided parts, by reducer.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use harness::State;
use harness::llm::{Message, Transcript, user};
use harness::state::{Has, Ops};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u8,
    text: String,
}

fn longest(longest: &mut Longest, word: String) {
    if word.len() > longest.0.len() {
        longest.0 = word;
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Longest(String);

type Counts = HashMap<String, u32>;
type Names = VecDeque<String>;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct All {
    #[state(provides)]
    title: String,
    #[state(provides, reduce = append)]
    lines: Vec<String>,
    #[state(provides, reduce = append)]
    names: Names,
    #[state(provides, reduce = add)]
    spent: Duration,
    #[state(provides, reduce = max)]
    most: Option<u8>,
    #[state(provides, reduce = min)]
    least: Option<u16>,
    #[state(provides, reduce = first)]
    first: Option<String>,
    #[state(provides, reduce = union)]
    tags: BTreeSet<String>,
    #[state(provides, reduce = merge)]
    prices: BTreeMap<String, u32>,
    #[state(provides, reduce = merge)]
    counts: Counts,
    #[state(provides, reduce = upsert(id))]
    rows: Vec<Row>,
    #[state(provides, reduce = transcript)]
    talk: Transcript,
    #[state(provides, reduce = longest, update = String)]
    longest: Longest,
    #[state(provides, reduce = append)]
    below: Vec<Self>,
}

/// Applies each change in its own update and returns the field.
fn given<T: Clone, C>(changes: impl IntoIterator<Item = C>) -> T
where
    All: Has<T, Change = C>,
{
    let mut all = All::default();
    for change in changes {
        let update = <All as Has<T>>::change(All::update(), change);
        all.apply(update, &mut Ops::off());
    }
    Has::<T>::part(&all).clone()
}

#[test]
fn a_change_is_the_setters_argument() {
    let text = |text: &str| text.to_owned();
    assert_eq!(given::<String, String>([text("a"), text("b")]), "b");
    assert_eq!(given::<Vec<String>, _>([vec![text("a")], vec![text("b")]]), ["a", "b"]);
    assert_eq!(given::<Names, _>([vec![text("a"), text("b")]]), ["a", "b"]);
    assert_eq!(given::<Duration, Duration>([Duration::from_secs(1); 2]), Duration::from_secs(2));
    assert_eq!(given::<Option<u8>, u8>([1, 3, 2]), Some(3));
    assert_eq!(given::<Option<u16>, u16>([2, 1, 3]), Some(1));
    assert_eq!(given::<Option<String>, String>([text("a"), text("b")]), Some(text("a")));
    assert_eq!(given::<BTreeSet<String>, _>([vec![text("a"); 2]]).len(), 1);
    assert_eq!(given::<BTreeMap<String, u32>, _>([vec![(text("tea"), 2)]])["tea"], 2);
    assert_eq!(given::<Counts, _>([vec![(text("a"), 1), (text("a"), 2)]])["a"], 2);
    let row = |text: &str| Row { id: 1, text: text.to_owned() };
    assert_eq!(given::<Vec<Row>, _>([vec![row("old")], vec![row("new")]]), [row("new")]);
    assert_eq!(given::<Transcript, Vec<Message>>([vec![user("hi")]]).len(), 1);
    assert_eq!(given::<Longest, String>([text("abc"), text("ab")]), Longest(text("abc")));
    assert_eq!(given::<Vec<All>, _>([vec![All::default()]]).len(), 1);
}

#[test]
fn changes_of_several_parts_make_one_update() {
    let update = <All as Has<String>>::change(All::update().most(3), "t".to_owned());
    let update = <All as Has<Vec<String>>>::change(update, vec!["a".to_owned()]);
    let update = <All as Has<Vec<String>>>::change(update, vec!["b".to_owned()]);
    assert_eq!(format!("{update:?}"), "AllUpdate { title, lines, most }");
    let mut all = All::default();
    all.apply(update, &mut Ops::off());
    assert_eq!((all.title.as_str(), all.lines.len(), all.most), ("t", 2, Some(3)));
}
