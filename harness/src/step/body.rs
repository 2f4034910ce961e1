use std::future::Future;
use std::pin::Pin;

/// A future with its type erased.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
