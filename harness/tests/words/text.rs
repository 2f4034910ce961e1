//! A file as pieces: each stretch of prose (a comment, a message, a paragraph) and each identifier,
//! as words with their lines.

/// What a file is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rust,
    Python,
    Markdown,
}

impl Kind {
    /// By the end of the file's name.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "rs" => Some(Self::Rust),
            "py" => Some(Self::Python),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// A stretch of words without punctuation, which a phrase does not cross.
pub(super) struct Piece {
    pub(super) words: Vec<Word>,
    /// The identifier that it is; prose is none.
    pub(super) name: Option<String>,
}

pub(super) struct Word {
    /// In lower case.
    pub(super) text: String,
    pub(super) line: usize,
}

pub(super) fn pieces(kind: Kind, source: &str) -> Vec<Piece> {
    let mut reader = Reader { rest: source.chars().collect(), at: 0, line: 1, found: Vec::new() };
    match kind {
        Kind::Rust => reader.rust(),
        Kind::Python => reader.python(),
        Kind::Markdown => {
            let text: Vec<(char, usize)> = lined(source, 1).collect();
            reader.prose(&text);
        }
    }
    reader.found
}

/// The words of an identifier or a word: `wait_until`, `WaitUntil` and `WAIT_UNTIL` have two.
pub(super) fn words_of(text: &str, line: usize) -> Vec<Word> {
    let mut words: Vec<String> = vec![String::new()];
    let chars: Vec<char> = text.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let lower_before = at > 0 && chars[at - 1].is_lowercase();
        let lower_after = chars.get(at + 1).is_some_and(|c| c.is_lowercase());
        let upper_before = at > 0 && chars[at - 1].is_uppercase();
        let starts = c.is_uppercase() && (lower_before || (upper_before && lower_after));
        if starts || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.map(|text| Word { text, line }).collect()
}

fn lined(text: &str, first: usize) -> impl Iterator<Item = (char, usize)> + '_ {
    let mut line = first;
    text.chars().map(move |c| {
        let at = (c, line);
        line += usize::from(c == '\n');
        at
    })
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    line: usize,
    found: Vec<Piece>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<(char, usize)> {
        let c = self.peek(0)?;
        let at = (c, self.line);
        self.at += 1;
        self.line += usize::from(c == '\n');
        Some(at)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    /// Up to the end of the line, without it.
    fn line_end(&mut self) -> Vec<(char, usize)> {
        let mut text = Vec::new();
        while self.peek(0).is_some_and(|c| c != '\n') {
            text.extend(self.next());
        }
        text
    }

    fn rust(&mut self) {
        while let Some(c) = self.peek(0) {
            if self.starts("//") {
                self.comment("//", &['/', '!']);
            } else if self.starts("/*") {
                self.block_comment();
            } else if c == '"' {
                self.skip(1);
                self.string(Some('\\'), "\"");
            } else if c == '\'' {
                self.quote();
            } else if c.is_alphabetic() || c == '_' {
                let name = self.name();
                let hashes = (0..).take_while(|at| self.peek(*at) == Some('#')).count();
                let quoted = self.peek(hashes) == Some('"');
                match (name.as_str(), quoted) {
                    ("r" | "br" | "cr", true) => {
                        self.skip(hashes + 1);
                        self.string(None, &format!("\"{}", "#".repeat(hashes)));
                    }
                    // The quote is read next.
                    ("b" | "c", true) if hashes == 0 => {}
                    _ => self.identifier(name),
                }
            } else {
                self.skip(1);
            }
        }
    }

    fn python(&mut self) {
        let mut after_dot = false;
        while let Some(c) = self.peek(0) {
            if c == '#' {
                self.comment("#", &['#']);
            } else if c == '"' || c == '\'' {
                let triple: String = [c; 3].iter().collect();
                let end = if self.starts(&triple) { triple } else { c.to_string() };
                self.skip(end.len());
                self.string(Some('\\'), &end);
            } else if c.is_alphabetic() || c == '_' {
                let name = self.name();
                let is_prefix = matches!(self.peek(0), Some('"' | '\''));
                if !after_dot && !is_prefix {
                    self.identifier(name);
                }
            } else {
                self.skip(1);
            }
            after_dot = c == '.';
        }
    }

    /// A comment with the comments on the lines below it that have nothing before them.
    fn comment(&mut self, start: &str, marks: &[char]) {
        let mut text = Vec::new();
        loop {
            let line = self.line_end();
            let from = line.iter().position(|(c, _)| !marks.contains(c)).unwrap_or(line.len());
            text.extend(&line[from..]);
            text.push(('\n', self.line));
            let (at, number) = (self.at, self.line);
            while self.peek(0).is_some_and(char::is_whitespace) && self.line <= number + 1 {
                self.next();
            }
            if self.line != number + 1 || !self.starts(start) {
                (self.at, self.line) = (at, number);
                break;
            }
        }
        self.prose(&text);
    }

    fn block_comment(&mut self) {
        let mut text = Vec::new();
        let mut depth = 0;
        loop {
            if self.starts("/*") {
                depth += 1;
                self.skip(2);
            } else if self.starts("*/") {
                depth -= 1;
                self.skip(2);
            } else {
                match self.next() {
                    Some(next) => text.push(next),
                    None => break,
                }
            }
            if depth == 0 {
                break;
            }
        }
        self.prose(&text);
    }

    /// A string whose start is read. One without white space is data, not prose.
    fn string(&mut self, escape: Option<char>, end: &str) {
        let mut text = Vec::new();
        while self.peek(0).is_some() && !self.starts(end) {
            let Some(next) = self.next() else { break };
            if Some(next.0) != escape {
                text.push(next);
                continue;
            }
            let Some((escaped, line)) = self.next() else { break };
            match escaped {
                // The white space after a line that is continued is no paragraph.
                '\n' => {
                    while self.peek(0).is_some_and(char::is_whitespace) {
                        self.next();
                    }
                    text.push((' ', line));
                }
                'n' | 'r' | 't' => text.push(('\t', line)),
                'u' | 'x' => text.push((';', line)),
                other => text.push((other, line)),
            }
        }
        self.skip(end.len());
        if text.iter().any(|(c, _)| c.is_whitespace()) {
            self.prose(&text);
        }
    }

    /// A character or a lifetime.
    fn quote(&mut self) {
        match (self.peek(1), self.peek(2)) {
            (Some('\\'), _) => {
                self.skip(3);
                while self.next().is_some_and(|(c, _)| c != '\'') {}
            }
            (Some(_), Some('\'')) => self.skip(3),
            _ => self.skip(1),
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while self.peek(0).is_some_and(|c| c.is_alphanumeric() || c == '_') {
            name.extend(self.next().map(|(c, _)| c));
        }
        name
    }

    fn identifier(&mut self, name: String) {
        self.found.push(Piece { words: words_of(&name, self.line), name: Some(name) });
    }

    /// Prose ends at punctuation and at empty lines; marks of emphasis and code are none.
    fn prose(&mut self, text: &[(char, usize)]) {
        let mut words = Vec::new();
        let mut ends = Vec::new();
        let mut at = 0;
        let mut blank = false;
        while let Some(&(c, line)) = text.get(at) {
            if c.is_alphanumeric() || c == '_' {
                let from = at;
                while text.get(at).is_some_and(|(c, _)| c.is_alphanumeric() || *c == '_') {
                    at += 1;
                }
                // After a dot it is a method or the end of a file's name.
                let is_member = from > 0 && text[from - 1].0 == '.';
                if is_member {
                    ends.push(words.len());
                } else {
                    let word: String = text[from..at].iter().map(|(c, _)| c).collect();
                    words.extend(words_of(&word, line));
                }
                blank = false;
                continue;
            }
            if (c == '\n' && blank) || !(c.is_whitespace() || "`*'\"-".contains(c)) {
                ends.push(words.len());
            }
            blank = c == '\n' || (blank && c.is_whitespace());
            at += 1;
        }
        ends.push(words.len());
        let mut words = words.into_iter();
        let mut from = 0;
        for end in ends {
            let words: Vec<Word> = words.by_ref().take(end - from).collect();
            from = end;
            if !words.is_empty() {
                self.found.push(Piece { words, name: None });
            }
        }
    }
}
