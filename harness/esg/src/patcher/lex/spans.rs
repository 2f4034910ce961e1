//! How far single tokens reach.

/// Where the code of a field ends: at its brace, its conversion or its format.
pub(super) fn field_end(bytes: &[u8], from: usize, limit: usize) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    for at in from..limit {
        let byte = bytes[at];
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b'}' | b':' | b'!') if depth == 0 => {
                if byte == b'!' && bytes.get(at + 1) == Some(&b'=') {
                    continue;
                }
                return at;
            }
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    limit
}

pub(super) fn is_prefix(word: &str) -> bool {
    word.len() <= 2 && word.chars().all(|c| "rRbBuUfFtT".contains(c))
}

pub(super) fn run(text: &str, part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !part(c)).unwrap_or(text.len())
}

pub(super) fn number(text: &str) -> usize {
    let mut length = 0;
    for c in text.chars() {
        let exponent = text[..length].ends_with(['e', 'E']) && !text.starts_with("0x");
        if !(c.is_alphanumeric() || c == '_' || c == '.' || (exponent && "+-".contains(c))) {
            break;
        }
        length += c.len_utf8();
    }
    length
}

pub(super) fn operator(text: &str) -> usize {
    const LONG: [&str; 24] = [
        "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=",
        "/=", "%=", "&=", "|=", "^=", "@=", "**", "//", ">>", "<<",
    ];
    LONG.iter()
        .find(|long| text.starts_with(**long))
        .map_or_else(|| text.chars().next().map_or(1, char::len_utf8), |long| long.len())
}
