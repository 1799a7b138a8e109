//! Follows the log: takes batches of records in, and gives out an image and what changed whenever the image may be seen.
//! Records between the begin and the end of a transaction are seen together or not at all (KIP-868).

use base::{LeaderEpoch, Offset};

use super::{MetadataDelta, MetadataImage, ReplayError};
use crate::records::Record;

/// An image in the making.
#[derive(Debug, Clone)]
pub struct Loader {
    image: MetadataImage,
    delta: MetadataDelta,
    before_transaction: Option<Box<(MetadataImage, MetadataDelta)>>,
    published: MetadataImage,
}

impl Loader {
    /// Goes on from an image that is known to everybody.
    pub fn new(image: MetadataImage) -> Loader {
        Loader { published: image.clone(), image, delta: MetadataDelta::default(), before_transaction: None }
    }

    /// The image with everything replayed so far, an open transaction included.
    pub fn latest(&self) -> &MetadataImage {
        &self.image
    }

    /// Takes in the records of one batch, which ends at `last_offset`.
    pub fn replay(&mut self, records: &[Record], last_offset: Offset, epoch: LeaderEpoch) -> Result<(), ReplayError> {
        for record in records {
            match record {
                Record::BeginTransaction(_) => {
                    if self.before_transaction.is_some() {
                        return Err(ReplayError::UnbalancedTransaction);
                    }
                    self.before_transaction = Some(Box::new((self.image.clone(), self.delta.clone())));
                }
                Record::EndTransaction(_) => {
                    self.before_transaction.take().ok_or(ReplayError::UnbalancedTransaction)?;
                }
                Record::AbortTransaction(_) => {
                    let before = self.before_transaction.take().ok_or(ReplayError::UnbalancedTransaction)?;
                    (self.image, self.delta) = *before;
                }
                record => self.image.replay(record, &mut self.delta)?,
            }
        }
        self.image.offset = last_offset;
        self.image.epoch = epoch;
        Ok(())
    }

    /// The image and what changed since the last call, unless a transaction is open.
    pub fn publish(&mut self) -> Option<(MetadataImage, MetadataDelta)> {
        match self.before_transaction {
            Some(_) => None,
            None => {
                self.published = self.image.clone();
                Some((self.image.clone(), std::mem::take(&mut self.delta)))
            }
        }
    }

    /// Puts the contents of a snapshot in the place of everything so far.
    pub fn reset(&mut self, image: MetadataImage) {
        self.before_transaction = None;
        self.delta = MetadataDelta::between(&self.published, &image);
        self.image = image;
    }
}
