//! The bodies of pages: unpacked under a limit, and read as text.

use encoding_rs::{Encoding, UTF_8};
use flate2::write::MultiGzDecoder;
use std::io::{self, Write};

/// How far into a page its own statement of the charset is looked for, as browsers do.
const PRESCAN: usize = 1024;

/// Keeps bytes up to a limit.
struct Kept {
    bytes: Vec<u8>,
    most: usize,
    full: bool,
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most - self.bytes.len();
        if bytes.len() > room {
            self.bytes.extend_from_slice(&bytes[..room]);
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Unpacks a body while it arrives, and keeps at most a number of unpacked bytes.
pub(super) struct Unpack {
    inner: Inner,
}

enum Inner {
    Plain(Kept),
    // Boxed for its size.
    Gzip(Box<MultiGzDecoder<Kept>>),
}

/// The packed body is damaged.
pub(super) struct Damaged;

impl Unpack {
    pub(super) fn new(gzip: bool, most: usize) -> Self {
        let kept = Kept { bytes: Vec::new(), most, full: false };
        let inner = match gzip {
            true => Inner::Gzip(Box::new(MultiGzDecoder::new(kept))),
            false => Inner::Plain(kept),
        };
        Self { inner }
    }

    /// Adds bytes as they were sent. Returns whether there is room for more.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<bool, Damaged> {
        let (wrote, full) = match &mut self.inner {
            Inner::Plain(kept) => (kept.write_all(bytes), kept.full),
            Inner::Gzip(gzip) => (gzip.write_all(bytes), gzip.get_ref().full),
        };
        match wrote {
            _ if full => Ok(false),
            Ok(()) => Ok(true),
            Err(_) => Err(Damaged),
        }
    }

    /// The bytes, and whether they are cut.
    pub(super) fn finish(self) -> Result<(Vec<u8>, bool), Damaged> {
        match self.inner {
            Inner::Plain(kept) => Ok((kept.bytes, kept.full)),
            Inner::Gzip(mut gzip) => {
                let finished = gzip.try_finish();
                let kept = std::mem::replace(
                    gzip.get_mut(),
                    Kept { bytes: Vec::new(), most: 0, full: true },
                );
                match finished {
                    _ if kept.full => Ok((kept.bytes, true)),
                    Ok(()) => Ok((kept.bytes, false)),
                    Err(_) => Err(Damaged),
                }
            }
        }
    }
}

/// What the header says of the content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ContentType {
    /// In lower case. Empty if the server does not say.
    pub(super) media: String,
    pub(super) charset: Option<String>,
}

impl ContentType {
    pub(super) fn of(header: &str) -> Self {
        let mut parts = header.split(';');
        let media = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("charset").then(|| value.to_owned())
        });
        Self { media, charset }
    }

    /// Whether it is text: `None` if only the bytes can say.
    pub(super) fn is_text(&self) -> Option<bool> {
        let (group, kind) = self.media.split_once('/')?;
        let kinds = ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-ndjson"];
        let text = group == "text"
            || ["+json", "+xml", "+yaml"].iter().any(|end| kind.ends_with(end))
            || (group == "application"
                && (kinds.contains(&kind)
                    || ["x-javascript", "x-yaml", "x-www-form-urlencoded", "ld+json", "graphql"]
                        .contains(&kind)));
        Some(text)
    }
}

/// Whether bytes without a type are text.
pub(super) fn looks_like_text(bytes: &[u8], cut: bool) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // The limit may split a character.
        Err(error) => cut && error.error_len().is_none(),
    };
    text && !bytes.contains(&0)
}

/// The text of a page: by its byte order mark, else by its header, else by what it says of itself,
/// else as UTF-8.
pub(super) fn text(bytes: &[u8], about: &ContentType, cut: bool) -> String {
    let named = |label: &str| Encoding::for_label(label.as_bytes());
    let encoding = about
        .charset
        .as_deref()
        .and_then(named)
        .or_else(|| stated(bytes, about).as_deref().and_then(named))
        .unwrap_or(UTF_8);
    let (text, _, _) = encoding.decode(bytes);
    match cut {
        true => text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned(),
        false => text.into_owned(),
    }
}

/// The charset that an HTML page states in itself.
fn stated(bytes: &[u8], about: &ContentType) -> Option<String> {
    if !about.media.contains("html") {
        return None;
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let (_, after) = head.split_once("charset=")?;
    let label = after.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(['"', '\'', ' ', '>', ';', '/']).unwrap_or(label.len());
    // A page that can be read this far is not UTF-16, whatever it says.
    Some(label[..end].to_owned()).filter(|label| !label.starts_with("utf-16"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packed: &[u8], piece: usize, most: usize) -> Option<(Vec<u8>, bool)> {
        let mut unpack = Unpack::new(true, most);
        for bytes in packed.chunks(piece) {
            if !unpack.push(bytes).ok()? {
                break;
            }
        }
        unpack.finish().ok()
    }

    #[test]
    fn a_packed_body_is_unpacked_however_it_is_split() {
        let text = "a page ".repeat(100);
        let packed = gzip(text.as_bytes());
        for piece in 1..packed.len() {
            assert_eq!(
                unpacked(&packed, piece, 10_000).unwrap(),
                (text.clone().into_bytes(), false)
            );
        }
    }

    #[test]
    fn a_bomb_is_cut_at_the_limit() {
        let packed = gzip(&vec![b'x'; 50_000_000]);
        assert!(packed.len() < 100_000);
        let (bytes, cut) = unpacked(&packed, 4096, 1000).unwrap();
        assert_eq!((bytes.len(), cut), (1000, true));
        let (bytes, cut) = unpacked(&packed, packed.len(), 1000).unwrap();
        assert_eq!((bytes.len(), cut), (1000, true));
    }

    #[test]
    fn a_damaged_or_ended_body_is_an_error() {
        let packed = gzip(b"a page");
        assert!(unpacked(&packed[..packed.len() - 3], 5, 1000).is_none());
        assert!(unpacked(b"no gzip at all", 5, 1000).is_none());
    }

    #[test]
    fn a_body_that_fits_exactly_is_not_cut() {
        assert_eq!(unpacked(&gzip(b"12345"), 9, 5).unwrap(), (b"12345".to_vec(), false));
        let mut plain = Unpack::new(false, 5);
        assert!(matches!(plain.push(b"12345"), Ok(true)));
        assert!(matches!(plain.push(b"6"), Ok(false)));
        assert!(matches!(plain.finish(), Ok((bytes, true)) if bytes == b"12345"));
    }

    #[test]
    fn the_charset_is_respected() {
        let html = ContentType::of("Text/HTML; Charset=\"ISO-8859-2\"");
        assert_eq!(text(b"za\xbf\xf3\xb3\xe6", &html, false), "zażółć");
        let html = ContentType::of("text/html");
        let page = b"<meta charset='windows-1251'>\xcf\xf0\xe8\xe2\xe5\xf2";
        assert!(text(page, &html, false).ends_with("Привет"));
        let plain = ContentType::of("text/plain");
        assert_eq!(text("żółw".as_bytes(), &plain, false), "żółw");
        assert_eq!(text(b"\xff\xfeh\0i\0", &plain, false), "hi");
        assert_eq!(text("żółw".as_bytes().split_last().unwrap().1, &plain, true), "żół");
        assert_eq!(
            text(b"a\xff", &ContentType::of("text/plain; charset=nonsense"), false),
            "a\u{fffd}"
        );
    }

    #[test]
    fn kinds_of_text_are_known() {
        for text in ["text/css", "application/json", "application/problem+json", "image/svg+xml"] {
            assert_eq!(ContentType::of(text).is_text(), Some(true), "{text}");
        }
        for other in ["image/png", "application/pdf", "application/octet-stream"] {
            assert_eq!(ContentType::of(other).is_text(), Some(false), "{other}");
        }
        assert_eq!(ContentType::of("").is_text(), None);
        assert!(looks_like_text("zażółć".as_bytes(), false));
        assert!(looks_like_text(b"za\xc5", true) && !looks_like_text(b"za\xc5", false));
        assert!(!looks_like_text(b"a\0b", false));
    }
}
