use super::super::host::frame::{Bounds, FrameError, Incoming, Message, head};

const BOUNDS: Bounds = Bounds { json: 100, blob: 1000 };

fn whole(json: &[u8], blob: &[u8]) -> Vec<u8> {
    [&head(json.len(), blob.len()).unwrap()[..], json, blob].concat()
}

#[test]
fn a_message_may_come_in_any_pieces() {
    let bytes = whole(b"{}", b"blob");
    for size in 1..=bytes.len() {
        let mut incoming = Incoming::new(BOUNDS);
        for piece in bytes.chunks(size) {
            assert!(!incoming.is_whole());
            incoming.take(piece).unwrap();
        }
        assert!(incoming.is_whole());
        let message = Message { json: b"{}".to_vec(), blob: b"blob".to_vec() };
        assert_eq!(incoming.done().unwrap(), message);
    }
}

#[test]
fn a_message_may_be_empty_but_not_of_less_than_its_lengths() {
    let mut incoming = Incoming::new(BOUNDS);
    incoming.take(&[0; 7]).unwrap();
    assert!(!incoming.is_whole());
    incoming.take(&[0]).unwrap();
    assert!(incoming.is_whole());
    let mut cut = Incoming::new(BOUNDS);
    cut.take(&whole(b"{}", b"blob")[..11]).unwrap();
    assert_eq!(cut.done().unwrap_err(), FrameError::Cut);
}

#[test]
fn lengths_over_the_bounds_are_refused_before_anything_is_held() {
    for (json, blob) in [(101, 0), (0, 1001), (u32::MAX as usize, u32::MAX as usize)] {
        let mut incoming = Incoming::new(BOUNDS);
        let refused = incoming.take(&head(json, blob).unwrap()).unwrap_err();
        assert_eq!(refused, FrameError::TooLong { json, blob });
    }
    assert_eq!(head(1 << 32, 0), None);
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut bytes = whole(b"{}", b"");
    bytes.push(0);
    assert_eq!(Incoming::new(BOUNDS).take(&bytes).unwrap_err(), FrameError::Trailing(1));
}
