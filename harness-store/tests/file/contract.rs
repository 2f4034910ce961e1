use harness::testing::Contract;
use harness_store::{FileStore, FileStoreOptions, Sync};

/// Each handle is a store of its own on the same directory, as if in a process of its own.
fn contract(dir: &std::path::Path, sync: Sync) -> Contract {
    let dir = dir.to_owned();
    Contract::new(move || {
        let dir = dir.clone();
        async move { FileStoreOptions::new().sync(sync).open(dir).await.unwrap() }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    contract(dir.path(), Sync::Flush).check().await;
}

#[tokio::test]
async fn every_clause_is_kept_without_syncs_on_one_thread() {
    let dir = tempfile::tempdir().unwrap();
    contract(dir.path(), Sync::Never).check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_with_few_open_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let open = move || {
        let path = path.clone();
        async move {
            let options = FileStoreOptions::new().sync(Sync::Never).open_files(2);
            options.open(path).await.unwrap()
        }
    };
    Contract::new(open).check().await;
}

#[tokio::test]
async fn clones_of_a_store_share_its_leases() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    let again = move || {
        let store = store.clone();
        async move { store }
    };
    Contract::new(again).check().await;
}
