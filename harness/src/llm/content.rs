//! The content of messages: an ordered list of parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::ops::Deref;

/// A part of a message from a user or a tool.
///
/// ```
/// use harness::llm::Part;
///
/// let part = Part::from("hello");
/// assert_eq!(serde_json::to_string(&part)?, r#"{"text":"hello"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text(String),
    /// Structured data. A protocol that does not support it sends the compact JSON text.
    Json(Value),
    /// An image.
    Image(Image),
    /// A document, such as a PDF.
    Document(Document),
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for Part {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<Document> for Part {
    fn from(document: Document) -> Self {
        Self::Document(document)
    }
}

impl From<Image> for Part {
    fn from(image: Image) -> Self {
        Self::Image(image)
    }
}

/// An image, by URL or inline.
///
/// `Debug` shows the size of an inline image, not its data.
///
/// ```
/// use harness::llm::{Image, Part, user};
///
/// let cat = Image::Url("https://example.com/cat.png".into());
/// let question = user(vec![Part::from("what is this?"), cat.into()]);
/// # let _ = question;
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Image {
    /// A URL that the provider can load.
    Url(String),
    /// The image data.
    Inline {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// Its bytes in standard base64.
        base64: String,
    },
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::Inline { media_type, base64 } => f
                .debug_struct("Inline")
                .field("media_type", media_type)
                .field("base64", &format_args!("{} characters", base64.len()))
                .finish(),
        }
    }
}

/// A document, such as a PDF, by URL or inline.
///
/// `Debug` shows the size of an inline document, not its data.
///
/// ```
/// use harness::llm::{Document, Part, user};
///
/// let terms = Document::Url("https://example.com/terms.pdf".into());
/// let question = user(vec![Part::from("may I cancel?"), terms.into()]);
/// # let _ = question;
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Document {
    /// A URL that the provider can load.
    Url(String),
    /// The document data.
    Inline {
        /// Its media type, such as `application/pdf`.
        media_type: String,
        /// Its bytes in standard base64.
        base64: String,
        /// Its title or file name, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::Inline { media_type, base64, name } => f
                .debug_struct("Inline")
                .field("media_type", media_type)
                .field("base64", &format_args!("{} characters", base64.len()))
                .field("name", name)
                .finish(),
        }
    }
}

/// The content of a message from a user or a tool: an ordered list of parts.
///
/// Text, JSON and parts convert into it, so `user("hi")` and a tool that returns `Ok("42")` need no
/// wrapping. It dereferences to a slice of [`Part`].
///
/// ```
/// use harness::llm::{Content, Part};
///
/// let content = Content::from("hello");
/// assert_eq!(content[..], [Part::Text("hello".into())]);
/// assert_eq!(content.text().as_deref(), Some("hello"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(Vec<Part>);

impl Content {
    /// Creates content from parts.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Self {
        Self(parts.into_iter().collect())
    }

    /// Creates content from one part that holds `value` as JSON.
    ///
    /// # Errors
    ///
    /// Fails if `value` has no JSON form, for example a map whose keys are not strings.
    ///
    /// ```
    /// use harness::llm::Content;
    ///
    /// let content = Content::json(&[1, 2])?;
    /// assert_eq!(serde_json::to_string(&content)?, r#"[{"json":[1,2]}]"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        Ok(Self(vec![Part::Json(serde_json::to_value(value)?)]))
    }

    /// The text parts in one string, or `None` if there is no text.
    pub fn text(&self) -> Option<String> {
        joined(self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        }))
    }

    /// The parts by value.
    pub fn into_parts(self) -> Vec<Part> {
        self.0
    }
}

impl Deref for Content {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        &self.0
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

/// Empty content.
impl From<()> for Content {
    fn from((): ()) -> Self {
        Self::default()
    }
}

macro_rules! one_part {
    ($($from:ty),+) => {$(
        impl From<$from> for Content {
            fn from(part: $from) -> Self {
                Self(vec![Part::from(part)])
            }
        }
    )+};
}

one_part!(&str, String, Value, Image, Document, Part);

/// Joins texts. `None` if there is no text, or only empty text.
pub(super) fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let text: String = texts.collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_skips_other_parts() {
        let content = Content::new(["a".into(), json!(1).into(), "b".into()]);
        assert_eq!(content.text().as_deref(), Some("ab"));
        assert_eq!(Content::from(json!("a")).text(), None);
        assert_eq!(Content::from("").text(), None);
    }

    #[test]
    fn debug_of_an_image_shows_no_data() {
        let image = Image::Inline { media_type: "image/png".into(), base64: "QUJD".into() };
        insta::assert_snapshot!(
            format!("{image:?}"),
            @r#"Inline { media_type: "image/png", base64: 4 characters }"#
        );
    }

    #[test]
    fn debug_of_a_document_shows_no_data() {
        let (media_type, base64) = ("application/pdf".into(), "QUJD".into());
        let document = Document::Inline { media_type, base64, name: Some("a.pdf".into()) };
        insta::assert_snapshot!(
            format!("{document:?}"),
            @r#"Inline { media_type: "application/pdf", base64: 4 characters, name: Some("a.pdf") }"#
        );
        let stored = serde_json::to_string(&Content::from(document.clone())).unwrap();
        insta::assert_snapshot!(
            stored,
            @r#"[{"document":{"inline":{"media_type":"application/pdf","base64":"QUJD","name":"a.pdf"}}}]"#
        );
        assert_eq!(serde_json::from_str::<Content>(&stored).unwrap(), document.into());
    }

    #[test]
    fn parts_are_tagged_in_json() {
        let content =
            Content::new(["a".into(), json!({"n": 1}).into(), Image::Url("u".into()).into()]);
        let text = serde_json::to_string(&content).unwrap();
        insta::assert_snapshot!(text, @r#"[{"text":"a"},{"json":{"n":1}},{"image":{"url":"u"}}]"#);
        assert_eq!(serde_json::from_str::<Content>(&text).unwrap(), content);
    }
}
