// @ts-check
/**
 * The shapes on the wire. This file holds types only, and no browser loads it.
 *
 * @typedef {"queued"|"running"|"waiting"|"cancelling"|"completed"|"failed"|"cancelled"|"timed_out"|"lost"} State
 *
 * @typedef {object} RowQuestion
 * @property {string} id
 * @property {string} kind permission or question
 * @property {string} text
 * @property {string|null} deadlineAt
 *
 * @typedef {object} Delivery
 * @property {"unread"|"leased"|"told"|"parked"|"muted"} state
 * @property {string} notice
 * @property {number|null} number
 * @property {string|null} turn
 * @property {string|null} at
 * @property {string|null} reason
 *
 * @typedef {object} Row One task, as a list shows it.
 * @property {string} id
 * @property {string} shortId
 * @property {string} title
 * @property {string} kind
 * @property {string} agent
 * @property {State} state
 * @property {number} run
 * @property {string} thread
 * @property {string|null} batch
 * @property {string|null} parent
 * @property {number} children
 * @property {string} now one line of its latest activity
 * @property {number|null} percent
 * @property {string} createdAt
 * @property {string|null} startedAt
 * @property {string|null} endedAt
 * @property {string} lastEventAt
 * @property {number} silentAfterMs
 * @property {string|null} timeoutAt
 * @property {number|null} usualMs
 * @property {number} usualRuns
 * @property {number|null} queuePosition
 * @property {RowQuestion|null} question
 * @property {number|null} exitCode
 * @property {Delivery|null} delivery
 * @property {boolean} notify false: nobody is told of its ending
 *
 * @typedef {object} ThreadCounts
 * @property {string} id
 * @property {number} active
 * @property {number} unread
 * @property {number} leased
 * @property {number} parked
 * @property {number} waiting
 * @property {string|null} lastEventAt
 *
 * @typedef {object} BatchCounts
 * @property {string} id
 * @property {string} thread
 * @property {number} done
 * @property {number} failed
 * @property {number} active
 * @property {number} total
 *
 * @typedef {object} Overview
 * @property {Record<string, number>} counts
 * @property {number[]} running60
 * @property {number|null} p50Ms
 * @property {number|null} p95Ms
 * @property {{failed: number, total: number}} failedLastHour
 * @property {{lateOrParked: number, total: number}} late
 * @property {{used: number, total: number|null, queued: number}} slots
 * @property {ThreadCounts[]} threads
 * @property {BatchCounts[]} batches
 *
 * @typedef {{rows: Row[], overview: Overview, seq: number}} Snapshot
 * @typedef {{rows: Row[], gone: string[], overview?: Overview, seq: number}} Patch
 *
 * @typedef {object} Worker A process on another machine that performs tasks.
 * @property {string} name
 * @property {string} host
 * @property {string} pool
 * @property {number} slots
 * @property {number} running
 * @property {string} version
 * @property {number} silent seconds since its last message
 * @property {boolean} draining
 *
 * @typedef {object} Access What the page's token may do.
 * @property {string|null} id
 * @property {"read"|"write"} access
 * @property {string|null} thread
 * @property {string|null} question
 * @property {string|null} expiresAt
 *
 * @typedef {object} Action
 * @property {string} name
 * @property {boolean} legal
 * @property {string} reason why it is not legal
 * @property {boolean} destroys
 * @property {string} cli
 *
 * @typedef {{id: string, label: string, allows: boolean|null, scope: string}} Choice
 *
 * @typedef {object} Question
 * @property {string} id
 * @property {string} kind
 * @property {string} text
 * @property {Choice[]} choices
 * @property {boolean} several
 * @property {string} subject
 * @property {any} arguments
 * @property {string|null} askedAt
 * @property {string|null} [deadlineAt]
 *
 * @typedef {Record<string, any> & {id: string, row: Row, actions: Action[], question: Question|null}} Task
 *
 * @typedef {object} Notice One line of a conversation's inbox.
 * @property {string} id
 * @property {number} number
 * @property {string} task
 * @property {number} run
 * @property {string} title
 * @property {State|null} outcome null where it is not an ending
 * @property {"unread"|"leased"|"told"|"parked"|"muted"} state
 * @property {string|null} turn
 * @property {number|null} turnNumber
 * @property {string|null} leasedAt
 * @property {string|null} toldAt
 * @property {number} attempts
 * @property {string|null} reason
 * @property {string|null} endedAt
 * @property {"ending"|"event"|"alarm"|"message"} kind
 * @property {string} text the words of what is not an ending
 */
export {};
