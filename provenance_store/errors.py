"""Every error Headwater raises on purpose.

HeadwaterError
├── SettingsError                (ValueError)    a setting is missing or contradicts another
├── InputError                   (ValueError)    what the user gave cannot be used
│   ├── IdError                                  not a record id
│   ├── DocumentError                            not a PROV-JSON document we can read
│   ├── MessageError                             headers, manifest or recording line out of contract
│   ├── UnknownRecordError       (LookupError)   the lake graph has never seen this id
│   └── UnknownRunError          (LookupError)   the lake graph has never seen this run
├── ServiceError                 (RuntimeError)  a local service does not start, stop or answer
│   └── PortTakenError                           someone else listens on the port
├── TransportError               (ConnectionError, may be retried)
│   └── DeliveryError                            not every message was confirmed
├── GraphError                   (ConnectionError, may be retried)  Neo4j refused or did not answer
├── StorageError                 (OSError)       a remote storage failed, or cannot do what was asked of it
├── AuditError                   (OSError)       who asked what cannot be kept, or was not kept as it was
└── JobError                     (RuntimeError)  a Spark or Hadoop job ended without its result

The message says what was wrong, with which value, and what to do next. `retryable` tells callers such as
Airflow whether the same call may succeed later.
"""

from typing import ClassVar


class HeadwaterError(Exception):
    """The root: catch this to catch everything Headwater raises on purpose."""

    retryable: ClassVar[bool] = False


class SettingsError(HeadwaterError, ValueError):
    """A setting is missing or contradicts another."""


class InputError(HeadwaterError, ValueError):
    """What the user gave cannot be used."""


class IdError(InputError):
    """A text that is not a record id, or parts that cannot form one."""


class DocumentError(InputError):
    """Bytes that are not a PROV-JSON document within the message contract."""


class MessageError(InputError):
    """Headers, a manifest or a recording's line outside the message contract."""


class UnknownRecordError(InputError, LookupError):
    """The lake graph has never seen this record."""


class UnknownRunError(InputError, LookupError):
    """The lake graph has never seen this run."""


class ServiceError(HeadwaterError, RuntimeError):
    """A local service does not start, stop or answer."""


class PortTakenError(ServiceError):
    """A port that a service needs is in use by something else."""


class TransportError(HeadwaterError, ConnectionError):
    """The message transport is unreachable or failed."""

    retryable = True


class DeliveryError(TransportError):
    """Some messages were handed over but never confirmed."""


class GraphError(HeadwaterError, ConnectionError):
    """Neo4j refused, or did not answer."""

    retryable = True


class StorageError(HeadwaterError, OSError):
    """A storage that is not this machine's failed, or cannot do what was asked of it."""


class AuditError(HeadwaterError, OSError):
    """The audit log cannot be written, or is not as it was written."""


class JobError(HeadwaterError, RuntimeError):
    """A Spark or Hadoop job ended without its result."""
