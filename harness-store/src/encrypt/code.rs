//! The same keys for programs of code steps.

use harness_esg::{Cipher, CipherError};

use super::cipher::{DecryptError, Place};
use super::key::Keys;

/// Encrypts what a program of code steps stores: give the keys to
/// [`CodeGraph::open_encrypted`](harness_esg::CodeGraph::open_encrypted).
impl Cipher for Keys {
    fn encrypt(&self, place: &[u8], bytes: &[u8]) -> Vec<u8> {
        // What is encrypted for a session decrypts at no place of a program, and the other way round.
        Keys::encrypt(self, &Place::new("code", &[place]), bytes)
    }

    fn decrypt(&self, place: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, CipherError> {
        Keys::decrypt(self, &Place::new("code", &[place]), encrypted).map_err(|error| match error {
            DecryptError::Plain => CipherError::Plain,
            DecryptError::Damaged => CipherError::Damaged,
            DecryptError::Missing(key) => CipherError::MissingKey { key },
            DecryptError::Wrong(key) => CipherError::WrongKey { key },
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use harness_esg::{BlobLimits, Blobs, Cipher, CipherError};

    use super::super::{Key, Keys};

    fn key(id: &str, secret: u8) -> Key {
        Key::new(id, [secret; 32]).unwrap()
    }

    #[test]
    fn bytes_decrypt_at_their_place_with_their_key_only() {
        let cipher: &dyn Cipher = &Keys::new(key("a", 1));
        let encrypted = cipher.encrypt(b"place", b"canary");
        assert!(!encrypted.windows(6).any(|window| window == b"canary"));
        let turned = Keys::new(key("b", 2)).also(key("a", 1));
        for keys in [cipher, &turned] {
            assert_eq!(keys.decrypt(b"place", &encrypted).unwrap(), b"canary");
            assert_eq!(keys.decrypt(b"other", &encrypted), Err(CipherError::Damaged));
            assert_eq!(keys.decrypt(b"place", b"canary"), Err(CipherError::Plain));
        }
        let missing = Cipher::decrypt(&Keys::new(key("b", 2)), b"place", &encrypted).unwrap_err();
        assert_eq!(missing, CipherError::MissingKey { key: "a".to_owned() });
        let wrong = Cipher::decrypt(&Keys::new(key("a", 2)), b"place", &encrypted).unwrap_err();
        assert_eq!(wrong, CipherError::WrongKey { key: "a".to_owned() });
        // The entries of sessions are at other places.
        let place = super::Place::new("entry", &[b"place"]);
        assert!(Keys::decrypt(&Keys::new(key("a", 1)), &place, &encrypted).is_err());
    }

    #[test]
    fn values_are_stored_with_the_keys_of_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let canary = b"canary ".repeat(100);
        let open = |keys| Blobs::dir_encrypted(dir.path(), BlobLimits::default(), Arc::new(keys));
        let blobs = open(Keys::new(key("a", 1))).unwrap();
        let id = blobs.put(&canary).unwrap();
        blobs.flush().unwrap();
        drop(blobs);
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"canary"));
        }
        let turned = open(Keys::new(key("b", 2)).also(key("a", 1))).unwrap();
        assert_eq!(turned.get(&id).unwrap().as_deref(), Some(&canary[..]));
        let refused = open(Keys::new(key("a", 3))).unwrap_err();
        let said = std::error::Error::source(&refused).unwrap().to_string();
        assert!(said.contains("another key than the one given as `a`"), "{said}");
        assert!(!format!("{turned:?} {refused:?}").contains("canary"));
    }
}
