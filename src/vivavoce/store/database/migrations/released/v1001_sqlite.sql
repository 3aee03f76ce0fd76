CREATE TABLE views (
    id INTEGER NOT NULL,
    author VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    path TEXT NOT NULL,
    shared INTEGER NOT NULL,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX views_by_author ON views (author, name);

CREATE TABLE webhooks (
    id VARCHAR NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events TEXT NOT NULL,
    author VARCHAR NOT NULL,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE tokens (
    id VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    created_at DOUBLE NOT NULL,
    expires_at DOUBLE,
    revoked_at DOUBLE,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX tokens_by_digest ON tokens (digest);

CREATE TABLE watches (
    name VARCHAR NOT NULL,
    heard_at DOUBLE NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE watch_hours (
    watch VARCHAR NOT NULL,
    hour BIGINT NOT NULL,
    figures TEXT NOT NULL,
    PRIMARY KEY (watch, hour)
);

CREATE TABLE jobs (
    id VARCHAR NOT NULL,
    folder VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    created_at DOUBLE NOT NULL,
    suite TEXT,
    run VARCHAR,
    grading VARCHAR,
    planned BIGINT,
    done BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    verdict VARCHAR,
    detail TEXT,
    request TEXT,
    "key" VARCHAR,
    body VARCHAR NOT NULL,
    new_run VARCHAR,
    starts INTEGER NOT NULL,
    calls BIGINT NOT NULL,
    cost DOUBLE NOT NULL,
    cancels INTEGER NOT NULL,
    owner VARCHAR,
    lease_until DOUBLE NOT NULL,
    fence BIGINT NOT NULL,
    holds VARCHAR,
    PRIMARY KEY (id)
);

CREATE INDEX jobs_by_run ON jobs (run);

CREATE INDEX jobs_by_hold ON jobs (holds);

CREATE UNIQUE INDEX jobs_by_key ON jobs (folder, "key");

CREATE INDEX jobs_by_time ON jobs (created_at, id);

CREATE INDEX jobs_by_status ON jobs (status, created_at);

CREATE TABLE rate_limits (
    client VARCHAR NOT NULL,
    "left" DOUBLE NOT NULL,
    at DOUBLE NOT NULL,
    PRIMARY KEY (client)
);

CREATE INDEX rate_limits_by_time ON rate_limits (at);

CREATE TABLE server_secrets (
    name VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE batches (
    id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    identity VARCHAR NOT NULL,
    requests INTEGER NOT NULL,
    created_at DOUBLE NOT NULL,
    file VARCHAR,
    service_id VARCHAR,
    strangers TEXT NOT NULL,
    ended_at DOUBLE,
    cause TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX batches_by_identity ON batches (identity, ended_at);

CREATE TABLE batch_questions (
    "key" VARCHAR NOT NULL,
    batch_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    tries INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    failure TEXT,
    "then" VARCHAR,
    usage TEXT,
    PRIMARY KEY ("key")
);

CREATE INDEX batch_questions_by_batch ON batch_questions (batch_id);

CREATE TABLE runs (
    id VARCHAR NOT NULL,
    suite VARCHAR NOT NULL,
    spec TEXT NOT NULL,
    base TEXT NOT NULL,
    options TEXT NOT NULL,
    status VARCHAR NOT NULL,
    started_at DOUBLE NOT NULL,
    finished_at DOUBLE,
    version VARCHAR NOT NULL,
    partial_of VARCHAR,
    title TEXT,
    notes TEXT,
    tags TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX runs_by_time ON runs (started_at);

CREATE TABLE replies (
    "key" VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    reply TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY ("key")
);

CREATE TABLE unread (
    attempt_id INTEGER NOT NULL,
    grading_id VARCHAR NOT NULL,
    PRIMARY KEY (attempt_id, grading_id)
);

CREATE TABLE calibrations (
    id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    grader VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    created_at DOUBLE NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX calibrations_by_fingerprint ON calibrations (fingerprint);

CREATE INDEX calibrations_by_run ON calibrations (run_id);

CREATE TABLE replaced (
    id INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    trial INTEGER NOT NULL,
    replaced_at DOUBLE NOT NULL,
    rows TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX replaced_by_run ON replaced (run_id);

CREATE TABLE audit (
    id INTEGER NOT NULL,
    at DOUBLE NOT NULL,
    actor VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    detail TEXT,
    PRIMARY KEY (id)
);

CREATE TABLE deliveries (
    id VARCHAR NOT NULL,
    webhook_id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    about TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    attempts INTEGER NOT NULL,
    next_at DOUBLE,
    delivered_at DOUBLE,
    status INTEGER,
    error TEXT,
    body TEXT,
    PRIMARY KEY (id),
    FOREIGN KEY(webhook_id) REFERENCES webhooks (id)
);

CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, created_at);

CREATE INDEX deliveries_by_time ON deliveries (next_at);

CREATE TABLE job_events (
    job_id VARCHAR NOT NULL,
    last BIGINT NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (job_id, last),
    FOREIGN KEY(job_id) REFERENCES jobs (id)
);

CREATE TABLE job_inputs (
    job_id VARCHAR NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (job_id),
    FOREIGN KEY(job_id) REFERENCES jobs (id)
);

CREATE TABLE gradings (
    id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    spec TEXT NOT NULL,
    fingerprints TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    finished_at DOUBLE,
    verdict VARCHAR,
    summary TEXT,
    passed_added INTEGER,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX gradings_by_run ON gradings (run_id);

CREATE TABLE attempts (
    id INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    trial INTEGER NOT NULL,
    position BIGINT NOT NULL,
    scenario VARCHAR NOT NULL,
    session_id VARCHAR,
    started_at DOUBLE NOT NULL,
    seconds DOUBLE,
    sample TEXT NOT NULL,
    opening TEXT,
    state TEXT,
    failure TEXT,
    usage TEXT,
    test TEXT,
    stratum INTEGER,
    probability DOUBLE,
    PRIMARY KEY (id),
    CONSTRAINT attempts_by_key UNIQUE (run_id, sample_id, target, trial),
    FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX attempts_by_run ON attempts (run_id, position, id);

CREATE TABLE turns (
    attempt_id INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    started_at DOUBLE,
    seconds DOUBLE,
    messages TEXT NOT NULL,
    usage TEXT,
    failure TEXT,
    PRIMARY KEY (attempt_id, idx),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE TABLE scores (
    id INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL,
    grading_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    turn INTEGER,
    turns INTEGER,
    state VARCHAR NOT NULL,
    value DOUBLE,
    reason TEXT,
    submission TEXT,
    ground_truth TEXT,
    extra TEXT,
    failure TEXT,
    usage TEXT,
    fingerprint VARCHAR,
    passed INTEGER,
    raw TEXT,
    confidence DOUBLE,
    findings TEXT,
    other_evidence TEXT,
    settings TEXT,
    PRIMARY KEY (id),
    CONSTRAINT scored_has_value CHECK ((state = 'scored') = (value IS NOT NULL OR raw IS NOT NULL)),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id),
    FOREIGN KEY(grading_id) REFERENCES gradings (id)
);

CREATE UNIQUE INDEX scores_by_attempt ON scores (attempt_id, grading_id, kind, name, coalesce(turn, -1));

CREATE INDEX scores_by_value ON scores (name, grading_id, attempt_id, value, passed, turn) WHERE turn IS NULL;

CREATE TABLE standings (
    grading_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    attempt_id INTEGER NOT NULL,
    state VARCHAR NOT NULL,
    rank DOUBLE NOT NULL,
    lowest DOUBLE,
    skips INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    seconds DOUBLE,
    tags TEXT,
    target VARCHAR,
    trial INTEGER,
    tokens BIGINT,
    cost DOUBLE,
    cause VARCHAR,
    PRIMARY KEY (grading_id, position, attempt_id),
    FOREIGN KEY(grading_id) REFERENCES gradings (id)
)
 WITHOUT ROWID;

CREATE INDEX standings_by_cause ON standings (grading_id, cause, target, position, attempt_id) WHERE cause IS NOT NULL;

CREATE TABLE passages (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    attempt_id INTEGER NOT NULL,
    grading_id VARCHAR NOT NULL,
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE INDEX passages_by_attempt ON passages (attempt_id);

CREATE VIRTUAL TABLE passage_words USING fts5(words, run, content='', columnsize=0, tokenize='unicode61 remove_diacritics 0');

CREATE TABLE labels (
    id INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL,
    turn INTEGER,
    grader VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    note TEXT,
    blind INTEGER NOT NULL,
    created_at DOUBLE NOT NULL,
    drawn DOUBLE,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE UNIQUE INDEX labels_by_attempt ON labels (attempt_id, grader, author, coalesce(turn, -1));

CREATE TABLE comments (
    id INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL,
    turn INTEGER,
    author VARCHAR NOT NULL,
    text TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    resolved_by VARCHAR,
    resolved_at DOUBLE,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE INDEX comments_by_attempt ON comments (attempt_id);

CREATE TABLE decisions (
    id INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL,
    turn INTEGER,
    grader VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    note TEXT,
    blind INTEGER NOT NULL,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE UNIQUE INDEX decisions_by_attempt ON decisions (attempt_id, grader, coalesce(turn, -1));

CREATE TABLE queues (
    id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    grading_id VARCHAR NOT NULL,
    grader VARCHAR NOT NULL,
    selection VARCHAR NOT NULL,
    seed BIGINT NOT NULL,
    blind INTEGER NOT NULL,
    overlap INTEGER NOT NULL,
    author VARCHAR NOT NULL,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES runs (id),
    FOREIGN KEY(grading_id) REFERENCES gradings (id)
);

CREATE INDEX queues_by_run ON queues (run_id);

CREATE TABLE queue_items (
    queue_id VARCHAR NOT NULL,
    person VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL,
    drawn DOUBLE,
    PRIMARY KEY (queue_id, person, position),
    FOREIGN KEY(queue_id) REFERENCES queues (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE INDEX queue_items_by_attempt ON queue_items (attempt_id);

CREATE INDEX queue_items_by_person ON queue_items (person)
