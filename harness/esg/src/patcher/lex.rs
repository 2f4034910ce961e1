//! A tolerant reader of Python's tokens.
//!
//! It is made for sources that do not parse: an open bracket ends where the
//! indentation shows that its author thought it closed, and an open string at
//! the end of its line. The code inside the fields of an f-string is read too.

mod spans;

use std::ops::Range;

use spans::{field_end, is_prefix, number, operator, run};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Number,
    Text,
    Op,
    Comment,
    /// The end of a statement.
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
    /// How many brackets are open around it.
    pub(super) depth: usize,
    /// Whether it stands in a field of an f-string.
    pub(super) nested: bool,
}

/// A bracket without its partner.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Loose {
    /// It is never closed; the last token it can hold ends at the byte.
    Open { open: usize, held_until: usize },
    /// It closes nothing.
    Close { close: usize },
    /// It meets a bracket of another kind, which is the innermost open one.
    Crossed { open: usize, close: usize, closes_outer: bool },
}

impl Loose {
    /// Where it stands.
    pub(super) fn place(&self, lexed: &Lexed<'_>) -> usize {
        let (Loose::Open { open: token, .. }
        | Loose::Close { close: token }
        | Loose::Crossed { close: token, .. }) = self;
        lexed.tokens[*token].span.start
    }
}

#[derive(Debug, Default)]
pub(super) struct Lexed<'a> {
    pub(super) source: &'a str,
    pub(super) tokens: Vec<Token>,
    pub(super) loose: Vec<Loose>,
    /// The tokens of strings without an end.
    pub(super) open_strings: Vec<usize>,
}

pub(super) fn lex(source: &str) -> Lexed<'_> {
    let mut reader = Reader { lexed: Lexed { source, ..Lexed::default() }, open: Vec::new() };
    reader.read(0..source.len(), false);
    reader.finish(source.len());
    reader.lexed
}

pub(super) fn closer(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

impl<'a> Lexed<'a> {
    pub(super) fn text(&self, token: &Token) -> &'a str {
        &self.source[token.span.clone()]
    }

    /// The tokens of the statement which covers a byte range, without
    /// comments.
    pub(super) fn statement(&self, touching: Range<usize>) -> Vec<usize> {
        let mut start = 0;
        for (index, token) in self.tokens.iter().enumerate() {
            if token.kind != Kind::End {
                continue;
            }
            let first = self.tokens[start..index].iter().find(|t| t.kind != Kind::Comment);
            if let Some(first) = first
                && first.span.start <= touching.end
                && token.span.start >= touching.start
            {
                return (start..index).filter(|i| self.tokens[*i].kind != Kind::Comment).collect();
            }
            start = index + 1;
        }
        Vec::new()
    }

    /// Every statement, as ranges of tokens without their ends.
    pub(super) fn statements(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for (index, token) in self.tokens.iter().enumerate() {
            if token.kind == Kind::End {
                if start < index {
                    found.push(start..index);
                }
                start = index + 1;
            }
        }
        found
    }

    /// Whether the token is this operator or name.
    pub(super) fn is(&self, index: usize, text: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| {
            matches!(token.kind, Kind::Op | Kind::Name) && self.text(token) == text
        })
    }
}

struct Reader<'a> {
    lexed: Lexed<'a>,
    /// The tokens of the open brackets.
    open: Vec<usize>,
}

impl Reader<'_> {
    fn read(&mut self, within: Range<usize>, nested: bool) {
        let source = self.lexed.source;
        let mut at = within.start;
        let mut line_start = !nested;
        while at < within.end {
            if line_start {
                line_start = false;
                self.close_by_indentation(at, within.end);
            }
            let rest = &source[at..within.end];
            let Some(first) = rest.chars().next() else {
                break;
            };
            let (kind, length) = match first {
                '\n' | '\r' => {
                    let length = if rest.starts_with("\r\n") { 2 } else { 1 };
                    if self.open.is_empty() && !nested {
                        self.end(at..at + length);
                    }
                    line_start = !nested;
                    at += length;
                    continue;
                }
                '\\' if rest[1..].starts_with(['\n', '\r']) => {
                    at += if rest[1..].starts_with("\r\n") { 3 } else { 2 };
                    continue;
                }
                c if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                '#' => (Kind::Comment, rest.find(['\n', '\r']).unwrap_or(rest.len())),
                '"' | '\'' => {
                    at = self.string(at, 0, within.end, nested);
                    continue;
                }
                c if c.is_alphabetic() || c == '_' => {
                    let length = run(rest, |c| c.is_alphanumeric() || c == '_');
                    if is_prefix(&rest[..length]) && rest[length..].starts_with(['"', '\'']) {
                        at = self.string(at, length, within.end, nested);
                        continue;
                    }
                    (Kind::Name, length)
                }
                c if c.is_ascii_digit() => (Kind::Number, number(rest)),
                '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    (Kind::Number, number(rest))
                }
                _ => (Kind::Op, operator(rest)),
            };
            self.push(kind, at..at + length, nested);
            at += length;
        }
    }

    fn push(&mut self, kind: Kind, span: Range<usize>, nested: bool) {
        let index = self.lexed.tokens.len();
        let text = &self.lexed.source[span.clone()];
        let mut depth = self.open.len();
        if kind == Kind::Op && !nested {
            match text {
                "(" | "[" | "{" => self.open.push(index),
                ")" | "]" | "}" => {
                    self.close(index, text);
                    depth = self.open.len();
                }
                _ => {}
            }
        }
        self.lexed.tokens.push(Token { kind, span, depth, nested });
    }

    fn close(&mut self, index: usize, text: &str) {
        let fits = |open: &usize| {
            let token: &Token = &self.lexed.tokens[*open];
            closer(self.lexed.text(token)) == text
        };
        match self.open.last() {
            None => self.lexed.loose.push(Loose::Close { close: index }),
            Some(open) if fits(open) => {
                self.open.pop();
            }
            Some(open) => {
                let partner = self.open.iter().rposition(fits);
                let crossed =
                    Loose::Crossed { open: *open, close: index, closes_outer: partner.is_some() };
                self.open.truncate(partner.unwrap_or(self.open.len() - 1));
                self.lexed.loose.push(crossed);
            }
        }
    }

    /// At the start of a line: brackets opened on a line that is indented no
    /// less than this one were meant to be closed before it.
    fn close_by_indentation(&mut self, at: usize, end: usize) {
        if self.open.is_empty() {
            return;
        }
        let text = self.lexed.source[at..end].split(['\n', '\r']).next().unwrap_or_default();
        let code = text.trim_start();
        if code.is_empty() || code.starts_with(['#', ')', ']', '}']) {
            return;
        }
        let here = super::lines::width(super::lines::indent(text));
        let outer = |open: &usize| {
            let start = self.lexed.tokens[*open].span.start;
            let line = self.lexed.source[..start].rfind('\n').map_or(0, |at| at + 1);
            super::lines::width(super::lines::indent(&self.lexed.source[line..])) < here
        };
        let kept = self.open.iter().take_while(|open| outer(open)).count();
        if kept == 0 {
            self.drop_open(0);
            let end = self.last_code_end();
            self.end(end..end);
        } else {
            self.drop_open(kept);
        }
    }

    fn drop_open(&mut self, kept: usize) {
        let held_until = self.last_code_end();
        let lost = self.open.split_off(kept);
        // The innermost first: that is the order to close them in.
        self.lexed
            .loose
            .extend(lost.into_iter().rev().map(|open| Loose::Open { open, held_until }));
    }

    fn last_code_end(&self) -> usize {
        let code = |token: &&Token| !matches!(token.kind, Kind::Comment | Kind::End);
        // Tokens in the fields of a string come after it but end before it.
        self.lexed.tokens.iter().rev().filter(code).take(64).map(|t| t.span.end).max().unwrap_or(0)
    }

    fn end(&mut self, span: Range<usize>) {
        self.lexed.tokens.push(Token { kind: Kind::End, span, depth: 0, nested: false });
    }

    fn finish(&mut self, end: usize) {
        self.drop_open(0);
        self.end(end..end);
    }

    /// Reads the string whose prefix starts at `at`; returns where it ends.
    fn string(&mut self, at: usize, prefix: usize, limit: usize, nested: bool) -> usize {
        let source = self.lexed.source;
        let body = &source[at + prefix..limit];
        let quote = &body[..1];
        let triple = body.starts_with("\"\"\"") || body.starts_with("'''");
        let mark = if triple { 3 } else { 1 };
        let mut inside = mark;
        let mut closed = false;
        let mut characters = body[mark..].char_indices();
        while let Some((offset, c)) = characters.next() {
            inside = mark + offset;
            if c == '\\' {
                characters.next();
            } else if !triple && (c == '\n' || c == '\r') {
                break;
            } else if body[inside..].starts_with(quote)
                && (!triple || body[inside..].starts_with(&quote.repeat(3)))
            {
                closed = true;
                break;
            }
            inside += c.len_utf8();
        }
        let inside = inside.min(body.len());
        let length = if closed { inside + mark } else { inside };
        if !closed {
            self.lexed.open_strings.push(self.lexed.tokens.len());
        }
        self.push(Kind::Text, at..at + prefix + length, nested);
        let prefix_text = &source[at..at + prefix];
        if prefix_text.contains(['f', 'F', 't', 'T']) {
            self.fields(at + prefix + mark..at + prefix + inside.max(mark));
        }
        at + prefix + length
    }

    /// Reads the code in the fields of an f-string.
    fn fields(&mut self, within: Range<usize>) {
        let bytes = self.lexed.source.as_bytes();
        let mut at = within.start;
        while at < within.end {
            if bytes[at] != b'{' {
                at += 1;
                continue;
            }
            if at + 1 < within.end && bytes[at + 1] == b'{' {
                at += 2;
                continue;
            }
            let end = field_end(bytes, at + 1, within.end);
            self.read(at + 1..end, true);
            // The rest, a format, may hold fields of its own.
            at = end + 1;
        }
    }
}

#[cfg(test)]
mod tests;
