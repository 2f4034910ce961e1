//! What the calls of a store share.

use super::client::Client;
use super::known::Known;
use super::listener::Listener;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) known: Known,
    pub(crate) listener: Listener,
}
