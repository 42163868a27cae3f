//! Sections 3.3 and 5.2: many connections, transactions beside bulk, and links shared by a group.

mod connections;
mod links;
mod transactions;

use super::Topic;
use crate::reproduce::{Cell, Experiment, Ruling, Samples};

pub(super) const TOPIC: Topic =
    Topic { experiments: &EXPERIMENTS, rule, remark, cells, figures: |_| Vec::new() };

const EXPERIMENTS: [Experiment; 3] = [connections::EXPERIMENT, transactions::EXPERIMENT, links::EXPERIMENT];

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        connections::CLAIM => Some(connections::start_faster(samples)),
        transactions::CLAIM => Some(transactions::slowed_down(samples)),
        links::CLAIM => Some(links::help(samples)),
        _ => None,
    }
}

fn remark(claim: &str) -> Option<&'static str> {
    match claim {
        connections::CLAIM => Some(
            "Without blockage eight are ahead, probably by the slow start that they save, by 0.03 of the rate over half a minute, and \
             without the link layer by far. Under COTMLL at f = 0.3 the lead is as small and does not show in 20 \
             realisations.",
        ),
        links::CLAIM => Some(
            "With the link layer the gain is small, probably since it already uses most of one link's open time; TCP alone gains \
             more than tenfold.",
        ),
        _ => None,
    }
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = connections::cells(samples);
    cells.extend(transactions::cells(samples));
    cells.extend(links::cells(samples));
    cells
}
