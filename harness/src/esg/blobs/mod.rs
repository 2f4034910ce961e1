//! stand-in
use serde::{Deserialize, Serialize};
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored(pub(crate) Vec<u8>);
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Blobs;
#[derive(Debug, thiserror::Error)]
#[error("blob")]
#[allow(missing_docs)]
pub struct BlobError;
#[allow(missing_docs)]
impl Blobs {
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<Stored, BlobError> {
        Ok(Stored(bytes.to_vec()))
    }
    pub(crate) fn value(&mut self, stored: &Stored) -> Option<crate::esg::exec::Blob> {
        Some(stored.0.clone().into())
    }
    pub(crate) fn has(&self, _: &Stored) -> bool {
        true
    }
}
#[allow(missing_docs)]
impl Blobs {
    pub fn memory() -> Self {
        Self
    }
    pub fn dir(_: impl AsRef<std::path::Path>) -> Result<Self, BlobError> {
        Ok(Self)
    }
    pub(crate) fn flush(&mut self) -> Result<(), BlobError> {
        Ok(())
    }
}
