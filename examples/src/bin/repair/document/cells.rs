//! The cells of a notebook, of which only the text of changed ones is replaced.

use std::borrow::Cow;

use harness::esg::{Program, ProgramError};
use serde::Deserialize;
use serde_json::value::RawValue;

/// How the library turns a line that only says how figures are shown into a comment, and back.
const DISPLAY: (&str, &str) = ("%matplotlib", "# %matplotlib");

#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: Vec<Cell<'a>>,
}

#[derive(Deserialize)]
struct Cell<'a> {
    #[serde(borrow)]
    cell_type: Cow<'a, str>,
    #[serde(borrow)]
    source: &'a RawValue,
}

/// Text, or a list of its parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Text(String),
    Lines(Vec<String>),
}

fn text(source: &RawValue) -> Option<String> {
    Some(match serde_json::from_str(source.get()).ok()? {
        Source::Text(text) => text,
        Source::Lines(lines) => lines.concat(),
    })
}

fn cells(json: &str) -> Result<Vec<Cell<'_>>, ProgramError> {
    let read = serde_json::from_str::<Notebook<'_>>(json);
    read.map(|notebook| notebook.cells).map_err(|error| ProgramError::NotANotebook {
        why: format!("{error} (save it as nbformat 4)"),
    })
}

/// The places of the cells that are steps, in order.
pub(super) fn places(json: &str, program: &Program) -> Result<Vec<(usize, String)>, ProgramError> {
    let mut steps = program.steps().peekable();
    let mut places = Vec::new();
    for (place, cell) in cells(json)?.iter().enumerate() {
        if cell.cell_type != "code" {
            continue;
        }
        let source = text(cell.source).map(|text| text.replace(DISPLAY.1, DISPLAY.0));
        let is_this =
            |step: &&harness::esg::Step| Some(step.source.replace(DISPLAY.1, DISPLAY.0)) == source;
        if let Some(step) = steps.next_if(is_this) {
            places.push((place, step.id.to_string()));
        }
    }
    match steps.next() {
        None => Ok(places),
        Some(step) => Err(ProgramError::NotANotebook {
            why: format!("the cell of step `{}` is not where it was read", step.id),
        }),
    }
}

/// The notebook with the sources of these cells as they are in the program.
pub(super) fn replaced(json: &str, places: &[(usize, String)], program: &Program) -> String {
    // It was read before.
    let Ok(cells) = cells(json) else { return json.to_owned() };
    let mut result = String::with_capacity(json.len());
    let mut copied = 0;
    for (place, id) in places {
        let (Some(cell), Ok(step)) = (cells.get(*place), program.step(id)) else { continue };
        let before = text(cell.source).unwrap_or_default();
        let now = match before.contains(DISPLAY.1) {
            true => step.source.to_string(),
            false => step.source.replace(DISPLAY.1, DISPLAY.0),
        };
        if now == before {
            continue;
        }
        let raw = cell.source.get();
        // The raw value is a part of the text.
        let start = raw.as_ptr().addr() - json.as_ptr().addr();
        result.push_str(&json[copied..start]);
        result.push_str(&written(&now, raw));
        copied = start + raw.len();
    }
    result.push_str(&json[copied..]);
    result
}

/// The text as JSON, written as the source before it was.
fn written(source: &str, like: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (Some(inner), Some(first), Some(last)) =
        (like.strip_prefix('['), like.find('"'), like.rfind('"'))
    else {
        return quoted(source);
    };
    let before = &inner[..first - 1];
    let lines: Vec<_> = source.split_inclusive('\n').map(quoted).collect();
    let comma = if before.is_empty() { ", ".to_owned() } else { format!(",{before}") };
    format!("[{before}{}{}", lines.join(&comma), &like[last + 1..])
}
