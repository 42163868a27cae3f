//! The runs of a reproduction: each once, in parallel, and not again if it was kept.

use core::fmt::{self, Debug};
use std::io;

use rayon::prelude::*;

use super::cache::Cache;
use crate::claims::Measurements;

/// One run, and whose it is.
pub(super) struct Job<K> {
    /// Whose measurements these are.
    pub(super) key: K,
    /// Of everything that the measurements depend on.
    pub(super) hash: u64,
    /// About how long it takes, in any unit that all jobs of a reproduction share.
    pub(super) work: u64,
    pub(super) measure: Box<dyn Fn() -> io::Result<Measurements> + Send + Sync>,
    known: Option<Measurements>,
}

impl<K: Debug> Debug for Job<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({:?}, {:016x})", self.key, self.hash)
    }
}

impl<K> Job<K> {
    pub(super) fn new(
        key: K,
        hash: u64,
        work: u64,
        cache: &Cache,
        measure: impl Fn() -> io::Result<Measurements> + Send + Sync + 'static,
    ) -> Self {
        Self { key, hash, work, measure: Box::new(measure), known: cache.load(hash) }
    }
}

/// The work of the jobs that were not kept.
pub(super) fn work<K>(jobs: &[Job<K>]) -> u64 {
    jobs.iter().filter(|job| job.known.is_none()).map(|job| job.work).sum()
}

/// Does every job, and calls `on_done` with the work of each that was not kept.
pub(super) fn run<K: Send>(
    mut jobs: Vec<Job<K>>,
    cache: &Cache,
    on_done: &(dyn Fn(u64) + Sync),
) -> io::Result<Vec<(K, Measurements)>> {
    // Cheap and dear jobs are spread evenly, so that the time left can be told from the work done.
    jobs.sort_by_key(|job| base::random::fnv1a(&job.hash.to_le_bytes()));
    jobs.into_par_iter()
        .with_max_len(1)
        .map(|job| {
            let measurements = match job.known {
                Some(known) => known,
                None => {
                    let new = (job.measure)()?;
                    cache.store(job.hash, &new)?;
                    on_done(job.work);
                    new
                }
            };
            Ok((job.key, measurements))
        })
        .collect()
}
