//! Literals as bytes: their value, not their spelling.

use super::{END, Writer};
use crate::scan::parse::{Ranged, TextRange, ast};

/// The tree's replacement for half of a surrogate pair, which Rust strings cannot hold.
const REPLACED: char = '\u{fffd}';

/// Whether a source may contain strings with halves of surrogate pairs.
pub(super) fn escapes(source: &str) -> bool {
    source.contains("\\u") || source.contains("\\U")
}

impl Writer<'_> {
    /// A piece of text, without its end. If the tree may have lost its value, its spelling follows.
    fn piece(&mut self, value: &str, range: TextRange) {
        self.bytes.extend_from_slice(value.as_bytes());
        if self.escapes && value.contains(REPLACED) {
            let source = self.source.get(range.start().to_usize()..range.end().to_usize());
            self.bytes.push(END - 1);
            self.text(source.unwrap_or_default());
        }
    }

    pub(super) fn string(&mut self, value: &ast::StringLiteralValue) {
        for part in value {
            self.piece(&part.value, part.range);
        }
        self.kind(END);
    }

    pub(super) fn byte_string(&mut self, value: &ast::BytesLiteralValue) {
        self.count(value.iter().map(|part| part.value.len()).sum());
        for part in value {
            self.bytes.extend_from_slice(&part.value);
        }
    }

    pub(super) fn f_string(&mut self, value: &ast::FStringValue) {
        let mut open = false;
        for part in value {
            match part {
                ast::FStringPart::Literal(part) => {
                    self.ensure_open(&mut open);
                    self.piece(&part.value, part.range);
                }
                ast::FStringPart::FString(part) => self.elements(&part.elements, &mut open),
            }
        }
        self.close(&mut open);
        self.kind(0);
    }

    pub(super) fn t_string(&mut self, value: &ast::TStringValue) {
        let mut open = false;
        for part in value {
            self.elements(&part.elements, &mut open);
        }
        self.close(&mut open);
        self.kind(0);
    }

    /// Text and its replacement fields. Adjacent texts are merged.
    fn elements(&mut self, elements: &ast::InterpolatedStringElements, open: &mut bool) {
        for element in elements {
            match element {
                ast::InterpolatedStringElement::Literal(literal) => {
                    self.ensure_open(open);
                    self.piece(&literal.value, literal.range());
                }
                ast::InterpolatedStringElement::Interpolation(element) => {
                    self.close(open);
                    self.interpolated(element);
                }
            }
        }
    }

    fn ensure_open(&mut self, open: &mut bool) {
        if !std::mem::replace(open, true) {
            self.kind(1);
        }
    }

    fn close(&mut self, open: &mut bool) {
        if std::mem::replace(open, false) {
            self.kind(END);
        }
    }

    fn interpolated(&mut self, element: &ast::InterpolatedElement) {
        let ast::InterpolatedElement {
            expression,
            debug_text,
            conversion,
            format_spec,
            range: _,
            node_index: _,
        } = element;
        self.kind(2);
        self.expr(expression);
        self.maybe(debug_text.as_ref(), |writer, debug| {
            // The spelling is shown, with Python's line ends.
            let lines = debug.as_str().replace("\r\n", "\n").replace('\r', "\n");
            writer.text(&lines);
        });
        self.kind(conversion.to_byte().unwrap_or(0));
        self.maybe(format_spec.as_deref(), |writer, spec| {
            let mut open = false;
            writer.elements(&spec.elements, &mut open);
            writer.close(&mut open);
            writer.kind(0);
        });
    }

    pub(super) fn numeral(&mut self, value: &ast::Number) {
        match value {
            ast::Number::Int(value) => match value.as_u64() {
                Some(value) => {
                    self.kind(0);
                    self.number(value);
                }
                None => {
                    self.kind(1);
                    self.text(&value.to_string());
                }
            },
            ast::Number::Float(value) => {
                self.kind(2);
                self.number(value.to_bits());
            }
            ast::Number::Complex { real, imag } => {
                self.kind(3);
                self.number(real.to_bits());
                self.number(imag.to_bits());
            }
        }
    }
}
