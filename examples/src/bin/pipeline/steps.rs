//! What a step can run, and the routes between steps.

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

use harness::prelude::*;
use schemars::JsonSchema;
use serde::de::Error as _;
use tokio::io::AsyncReadExt as _;

use super::parameters::Known;

/// The most bytes of input that a step reads.
const MAX_INPUT: u64 = 64 << 20;

/// The state of a pipeline.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Text {
    /// The lines so far.
    pub(super) lines: Vec<String>,
    /// The files that were written.
    #[state(reduce = append)]
    pub(super) written: Vec<String>,
}

/// The folders that a pipeline reads and writes.
#[derive(Context, Debug)]
pub(super) struct Ctx {
    /// The folder of the description; input files are relative to it.
    input: PathBuf,
    /// Files to read instead of those that steps name.
    fed: BTreeMap<PathBuf, PathBuf>,
    /// The folder that steps write their files into.
    output: PathBuf,
}

impl Ctx {
    pub(super) fn slots(
        input: PathBuf,
        fed: BTreeMap<PathBuf, PathBuf>,
        output: PathBuf,
    ) -> <Self as Context>::Fixed {
        Self::fixed().input(input).fed(fed).output(output).build()
    }
}

/// Whether there are lines.
#[derive(Signal, Clone, Copy, Debug)]
enum Amount {
    None,
    Some,
}

/// Whether lines repeat others.
#[derive(Signal, Clone, Copy, Debug)]
enum Repeats {
    Unique,
    Repeated,
}

fn amount(text: &Text) -> Amount {
    if text.lines.is_empty() { Amount::None } else { Amount::Some }
}

fn repeats(text: &Text) -> Repeats {
    let mut seen = HashSet::new();
    match text.lines.iter().all(|line| seen.insert(line)) {
        true => Repeats::Unique,
        false => Repeats::Repeated,
    }
}

/// The registry: everything that a description may name.
pub(super) fn known() -> Known {
    Known::new()
        .make::<Read>("read")
        .make::<Filter>("filter")
        .run("dedupe", dedupe)
        .make::<Sort>("sort")
        .run("count_words", count_words)
        .make::<Head>("head")
        .make::<Write>("write")
        .route("amount", amount)
        .route("repeats", repeats)
}

/// Reads the lines of files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    files: Vec<PathBuf>,
}

#[async_trait]
impl Handler<Ctx, Text> for Read {
    async fn run(&self, _: View<Text>, cx: Cx<Ctx>) -> StepResult<Text> {
        let mut lines = Vec::new();
        let mut left = MAX_INPUT;
        for file in &self.files {
            let fed = cx.fed.get(file);
            let path = fed.cloned().unwrap_or_else(|| cx.input.join(file));
            let name = path.display();
            let failed = |error| StepError::fatal(format!("cannot read `{name}`: {error}"));
            let text = match fed {
                Some(fed) if fed == Path::new("-") => standard_input().await,
                _ => bytes_of(&path, left + 1).await,
            };
            let text = text.map_err(failed)?;
            left = left.checked_sub(text.len() as u64).ok_or_else(|| {
                StepError::fatal(format!(
                    "`{name}` is too large: all input may be {MAX_INPUT} bytes"
                ))
            })?;
            let text = String::from_utf8(text)
                .map_err(|error| failed(std::io::Error::other(error.utf8_error())))?;
            lines.extend(text.lines().map(str::to_owned));
        }
        Ok(Text::update().lines(lines))
    }
}

/// The first bytes of a file. The limit is on what is read, not on the file's size: pipes and devices
/// have none, and a file may grow.
async fn bytes_of(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tokio::fs::File::open(path).await?.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Standard input, read once for all steps that use it.
async fn standard_input() -> std::io::Result<Vec<u8>> {
    static READ: tokio::sync::OnceCell<Vec<u8>> = tokio::sync::OnceCell::const_new();
    let read = || {
        let mut bytes = Vec::new();
        let input = std::io::Read::take(std::io::stdin(), MAX_INPUT + 1);
        std::io::Read::read_to_end(&mut { input }, &mut bytes)?;
        Ok(bytes)
    };
    let reading =
        || async { tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)? };
    READ.get_or_try_init(reading).await.cloned()
}

/// Keeps the lines that contain a text, or those that do not.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    contains: String,
    #[serde(default)]
    invert: bool,
    #[serde(default)]
    ignore_case: bool,
}

#[async_trait]
impl Handler<Ctx, Text> for Filter {
    async fn run(&self, text: View<Text>, _: Cx<Ctx>) -> StepResult<Text> {
        let wanted = self.contains.to_lowercase();
        let has = |line: &&String| match self.ignore_case {
            true => line.to_lowercase().contains(&wanted),
            false => line.contains(&self.contains),
        };
        let kept = text.lines.iter().filter(|line| has(line) != self.invert);
        Ok(Text::update().lines(kept.cloned().collect::<Vec<_>>()))
    }
}

/// Keeps the first of equal lines.
async fn dedupe(text: View<Text>, _: Cx<Ctx>) -> StepResult<Text> {
    let mut seen = HashSet::new();
    let kept = text.lines.iter().filter(|line| seen.insert(*line));
    Ok(Text::update().lines(kept.cloned().collect::<Vec<_>>()))
}

/// Sorts the lines, by the number at their start if `numeric`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sort {
    #[serde(default)]
    reverse: bool,
    #[serde(default)]
    numeric: bool,
}

#[async_trait]
impl Handler<Ctx, Text> for Sort {
    async fn run(&self, text: View<Text>, _: Cx<Ctx>) -> StepResult<Text> {
        let mut lines = text.lines.clone();
        lines.sort();
        if self.numeric {
            lines.sort_by_key(|line| {
                let number = line.split_whitespace().next().and_then(|word| word.parse().ok());
                number.unwrap_or(0_u64)
            });
        }
        if self.reverse {
            lines.reverse();
        }
        Ok(Text::update().lines(lines))
    }
}

/// Replaces the lines by their words, each with its count.
async fn count_words(text: View<Text>, _: Cx<Ctx>) -> StepResult<Text> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in &text.lines {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '\'') {
            if !word.is_empty() {
                *counts.entry(word.to_lowercase()).or_default() += 1;
            }
        }
    }
    let lines = counts.into_iter().map(|(word, count)| format!("{count:>6} {word}"));
    Ok(Text::update().lines(lines.collect::<Vec<_>>()))
}

/// Keeps the first lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Head {
    lines: usize,
}

#[async_trait]
impl Handler<Ctx, Text> for Head {
    async fn run(&self, text: View<Text>, _: Cx<Ctx>) -> StepResult<Text> {
        Ok(Text::update().lines(text.lines.iter().take(self.lines).cloned().collect::<Vec<_>>()))
    }
}

/// Writes the lines into a file below the output folder.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    #[serde(deserialize_with = "below")]
    file: PathBuf,
}

/// A relative path that does not leave its folder.
fn below<'de, D: serde::Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(from)?;
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    match path != Path::new("") && path.components().all(inside) {
        true => Ok(path),
        false => Err(D::Error::custom("`file` must be a path below the output folder")),
    }
}

#[async_trait]
impl Handler<Ctx, Text> for Write {
    async fn run(&self, text: View<Text>, cx: Cx<Ctx>) -> StepResult<Text> {
        let path = cx.output.join(&self.file);
        let name = path.display();
        let failed = |error| StepError::fatal(format!("cannot write `{name}`: {error}"));
        if let Some(folder) = path.parent() {
            tokio::fs::create_dir_all(folder).await.map_err(failed)?;
        }
        let mut content = text.lines.join("\n");
        if !content.is_empty() {
            content.push('\n');
        }
        tokio::fs::write(&path, content).await.map_err(failed)?;
        Ok(Text::update().written([name.to_string()]))
    }
}
