//! Sections 3.3 and 5.2: many connections, transactions beside bulk, and links shared by a group.

mod connections;
mod links;
mod transactions;

use super::Topic;
use crate::reproduce::{Cell, Experiment, Ruling, Samples};

pub(super) const TOPIC: Topic =
    Topic { experiments: &EXPERIMENTS, rule, remark: |_| None, cells, figures: |_| Ok(Vec::new()) };

const EXPERIMENTS: [Experiment; 3] = [connections::EXPERIMENT, transactions::EXPERIMENT, links::EXPERIMENT];

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        connections::CLAIM => Some(connections::start_faster(samples)),
        transactions::CLAIM => Some(transactions::slowed_down(samples)),
        links::CLAIM => Some(links::help(samples)),
        _ => None,
    }
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = connections::cells(samples);
    cells.extend(transactions::cells(samples));
    cells.extend(links::cells(samples));
    cells
}
