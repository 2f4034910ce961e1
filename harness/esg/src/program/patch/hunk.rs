//! Reads unified diffs as people and models write them: counts may be wrong, line numbers missing.

/// Lines that replace others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    /// The line of the first old one, from 1, if it is known.
    pub(super) line: Option<usize>,
    /// The beginning of the function or class that the hunk is in, if it is named.
    pub(super) section: Option<&'a str>,
    pub(super) lines: Vec<(Sign, &'a str)>,
    /// Whether the new text ends with a line end, if the hunk says so.
    pub(super) ends: Option<bool>,
}

/// What a hunk does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Keep,
    Remove,
    Add,
}

impl<'a> Hunk<'a> {
    /// The lines before the change.
    pub(super) fn before(&self) -> Vec<&'a str> {
        self.without(Sign::Add)
    }

    /// The lines after it.
    pub(super) fn after(&self) -> Vec<&'a str> {
        self.without(Sign::Remove)
    }

    fn without(&self, sign: Sign) -> Vec<&'a str> {
        self.lines.iter().filter(|(of, _)| *of != sign).map(|(_, line)| *line).collect()
    }
}

/// How many lines the head of a hunk says are still to come.
#[derive(Default)]
struct Left {
    old: usize,
    new: usize,
}

/// The hunks of the diff of one file, or what is wrong with it, with the number of the hunk.
pub(super) fn parse(diff: &str) -> Result<Vec<Hunk<'_>>, (usize, String)> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut left = Left::default();
    // Empty lines that are a part of the hunk if another line of it follows.
    let mut blank = 0;
    let lines: Vec<&str> = super::text::unfenced(diff).split_inclusive('\n').collect();
    for (at, whole) in lines.iter().enumerate() {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let number = hunks.len();
        let due = left.old > 0 || left.new > 0;
        // No line of a hunk begins with it.
        if line.starts_with("@@") {
            let (hunk, counts) = head(line);
            hunks.push(hunk);
            (left, blank) = (counts, 0);
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            // What stands before the first hunk: names of files, or prose.
            continue;
        };
        let next = lines.get(at + 1).copied().unwrap_or_default();
        if !due && line.starts_with("--- ") && next.starts_with("+++ ") {
            return Err((
                number,
                "it is a diff of more than one step (make one edit per step)".into(),
            ));
        }
        if line.trim_end().is_empty() && !line.starts_with(' ') && !due {
            blank += 1;
            continue;
        }
        let (sign, rest) = match line.as_bytes().first() {
            Some(b' ') => (Sign::Keep, &line[1..]),
            Some(b'-') => (Sign::Remove, &line[1..]),
            Some(b'+') => (Sign::Add, &line[1..]),
            None | Some(b'\r') => (Sign::Keep, line),
            Some(b'\\') => {
                ended(hunk);
                continue;
            }
            Some(_) => {
                let why = "its lines must begin with a space, `-` or `+`, but one is";
                return Err((number, format!("{why} `{}`", crate::text::shown(line))));
            }
        };
        hunk.lines.extend(std::iter::repeat_n((Sign::Keep, ""), std::mem::take(&mut blank)));
        left.old = left.old.saturating_sub(usize::from(sign != Sign::Add));
        left.new = left.new.saturating_sub(usize::from(sign != Sign::Remove));
        hunk.lines.push((sign, rest));
    }
    if hunks.is_empty() {
        return Err((1, "it has no hunk (a hunk begins with `@@`)".into()));
    }
    for (at, hunk) in hunks.iter().enumerate() {
        if hunk.lines.iter().all(|(sign, _)| *sign == Sign::Keep) {
            return Err((at + 1, "the hunk changes nothing".into()));
        }
    }
    Ok(hunks)
}

/// `@@ -1,2 +3,4 @@ def f():`, or a part of that.
fn head(line: &str) -> (Hunk<'_>, Left) {
    let rest = line.trim_start_matches('@').trim();
    let (ranges, section) = match rest.find("@@") {
        Some(at) => (&rest[..at], rest[at + 2..].trim()),
        None if rest.starts_with('-') => (rest, ""),
        None => ("", rest),
    };
    let mut hunk = Hunk { section: (!section.is_empty()).then_some(section), ..Hunk::default() };
    let mut left = Left::default();
    for word in ranges.split_whitespace() {
        let Some(numbers) = word.strip_prefix(['-', '+']) else { continue };
        let (first, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
        let (Ok(first), Ok(count)) = (first.parse::<usize>(), count.parse::<usize>()) else {
            continue;
        };
        match word.starts_with('-') {
            true => (hunk.line, left.old) = ((first > 0).then_some(first), count),
            false => left.new = count,
        }
    }
    (hunk, left)
}

/// The line before has no line end.
fn ended(hunk: &mut Hunk<'_>) {
    match hunk.lines.last() {
        Some((Sign::Remove, _)) => hunk.ends = Some(true),
        Some(_) => hunk.ends = Some(false),
        None => {}
    }
}
