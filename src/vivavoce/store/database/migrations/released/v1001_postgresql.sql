CREATE TABLE views (
    id BIGSERIAL NOT NULL,
    author VARCHAR COLLATE "C" NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
    path TEXT NOT NULL,
    shared INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX views_by_author ON views (author, name);

CREATE TABLE webhooks (
    id VARCHAR COLLATE "C" NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events TEXT NOT NULL,
    author VARCHAR COLLATE "C" NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE tokens (
    id VARCHAR COLLATE "C" NOT NULL,
    digest VARCHAR COLLATE "C" NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
    role VARCHAR COLLATE "C" NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION,
    revoked_at DOUBLE PRECISION,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX tokens_by_digest ON tokens (digest);

CREATE TABLE watches (
    name VARCHAR COLLATE "C" NOT NULL,
    heard_at DOUBLE PRECISION NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE watch_hours (
    watch VARCHAR COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    figures TEXT NOT NULL,
    PRIMARY KEY (watch, hour)
);

CREATE TABLE jobs (
    id VARCHAR COLLATE "C" NOT NULL,
    folder VARCHAR COLLATE "C" NOT NULL,
    kind VARCHAR COLLATE "C" NOT NULL,
    status VARCHAR COLLATE "C" NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    suite TEXT,
    run VARCHAR COLLATE "C",
    grading VARCHAR COLLATE "C",
    planned BIGINT,
    done BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    verdict VARCHAR COLLATE "C",
    detail TEXT,
    request TEXT,
    key VARCHAR COLLATE "C",
    body VARCHAR COLLATE "C" NOT NULL,
    new_run VARCHAR COLLATE "C",
    starts INTEGER NOT NULL,
    calls BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    cancels INTEGER NOT NULL,
    owner VARCHAR COLLATE "C",
    lease_until DOUBLE PRECISION NOT NULL,
    fence BIGINT NOT NULL,
    holds VARCHAR COLLATE "C",
    PRIMARY KEY (id)
);

CREATE INDEX jobs_by_run ON jobs (run);

CREATE INDEX jobs_by_hold ON jobs (holds);

CREATE UNIQUE INDEX jobs_by_key ON jobs (folder, key);

CREATE INDEX jobs_by_time ON jobs (created_at, id);

CREATE INDEX jobs_by_status ON jobs (status, created_at);

CREATE TABLE rate_limits (
    client VARCHAR COLLATE "C" NOT NULL,
    "left" DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (client)
);

CREATE INDEX rate_limits_by_time ON rate_limits (at);

CREATE TABLE server_secrets (
    name VARCHAR COLLATE "C" NOT NULL,
    value VARCHAR COLLATE "C" NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE batches (
    id VARCHAR COLLATE "C" NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    model VARCHAR COLLATE "C" NOT NULL,
    identity VARCHAR COLLATE "C" NOT NULL,
    requests INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    file VARCHAR COLLATE "C",
    service_id VARCHAR COLLATE "C",
    strangers TEXT NOT NULL,
    ended_at DOUBLE PRECISION,
    cause TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX batches_by_identity ON batches (identity, ended_at);

CREATE TABLE batch_questions (
    key VARCHAR COLLATE "C" NOT NULL,
    batch_id VARCHAR COLLATE "C" NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    state VARCHAR COLLATE "C" NOT NULL,
    tries INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    failure TEXT,
    "then" VARCHAR COLLATE "C",
    usage TEXT,
    PRIMARY KEY (key)
);

CREATE INDEX batch_questions_by_batch ON batch_questions (batch_id);

CREATE TABLE runs (
    id VARCHAR COLLATE "C" NOT NULL,
    suite VARCHAR COLLATE "C" NOT NULL,
    spec TEXT NOT NULL,
    base TEXT NOT NULL,
    options TEXT NOT NULL,
    status VARCHAR COLLATE "C" NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    finished_at DOUBLE PRECISION,
    version VARCHAR COLLATE "C" NOT NULL,
    partial_of VARCHAR COLLATE "C",
    title TEXT,
    notes TEXT,
    tags TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX runs_by_time ON runs (started_at);

CREATE TABLE replies (
    key VARCHAR COLLATE "C" NOT NULL,
    model VARCHAR COLLATE "C" NOT NULL,
    reply TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (key)
);

CREATE TABLE unread (
    attempt_id BIGINT NOT NULL,
    grading_id VARCHAR COLLATE "C" NOT NULL,
    PRIMARY KEY (attempt_id, grading_id)
);

CREATE TABLE calibrations (
    id VARCHAR COLLATE "C" NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    grader VARCHAR COLLATE "C" NOT NULL,
    fingerprint VARCHAR COLLATE "C" NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX calibrations_by_fingerprint ON calibrations (fingerprint);

CREATE INDEX calibrations_by_run ON calibrations (run_id);

CREATE TABLE replaced (
    id BIGSERIAL NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    sample_id VARCHAR COLLATE "C" NOT NULL,
    target VARCHAR COLLATE "C" NOT NULL,
    trial INTEGER NOT NULL,
    replaced_at DOUBLE PRECISION NOT NULL,
    rows TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX replaced_by_run ON replaced (run_id);

CREATE TABLE audit (
    id BIGSERIAL NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    actor VARCHAR COLLATE "C" NOT NULL,
    action VARCHAR COLLATE "C" NOT NULL,
    subject VARCHAR COLLATE "C" NOT NULL,
    detail TEXT,
    PRIMARY KEY (id)
);

CREATE TABLE deliveries (
    id VARCHAR COLLATE "C" NOT NULL,
    webhook_id VARCHAR COLLATE "C" NOT NULL,
    event VARCHAR COLLATE "C" NOT NULL,
    about TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    attempts INTEGER NOT NULL,
    next_at DOUBLE PRECISION,
    delivered_at DOUBLE PRECISION,
    status INTEGER,
    error TEXT,
    body TEXT,
    PRIMARY KEY (id),
    FOREIGN KEY(webhook_id) REFERENCES webhooks (id)
);

CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, created_at);

CREATE INDEX deliveries_by_time ON deliveries (next_at);

CREATE TABLE job_events (
    job_id VARCHAR COLLATE "C" NOT NULL,
    last BIGINT NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (job_id, last),
    FOREIGN KEY(job_id) REFERENCES jobs (id)
);

CREATE TABLE job_inputs (
    job_id VARCHAR COLLATE "C" NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (job_id),
    FOREIGN KEY(job_id) REFERENCES jobs (id)
);

CREATE TABLE gradings (
    id VARCHAR COLLATE "C" NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    spec TEXT NOT NULL,
    fingerprints TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    finished_at DOUBLE PRECISION,
    verdict VARCHAR COLLATE "C",
    summary TEXT,
    passed_added INTEGER,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX gradings_by_run ON gradings (run_id);

CREATE TABLE attempts (
    id BIGINT NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    sample_id VARCHAR COLLATE "C" NOT NULL,
    target VARCHAR COLLATE "C" NOT NULL,
    trial INTEGER NOT NULL,
    position BIGINT NOT NULL,
    scenario VARCHAR COLLATE "C" NOT NULL,
    session_id VARCHAR COLLATE "C",
    started_at DOUBLE PRECISION NOT NULL,
    seconds DOUBLE PRECISION,
    sample TEXT NOT NULL,
    opening TEXT,
    state TEXT,
    failure TEXT,
    usage TEXT,
    test TEXT,
    stratum INTEGER,
    probability DOUBLE PRECISION,
    PRIMARY KEY (id),
    CONSTRAINT attempts_by_key UNIQUE (run_id, sample_id, target, trial),
    FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX attempts_by_run ON attempts (run_id, position, id);

CREATE TABLE turns (
    attempt_id BIGINT NOT NULL,
    idx INTEGER NOT NULL,
    started_at DOUBLE PRECISION,
    seconds DOUBLE PRECISION,
    messages TEXT NOT NULL,
    usage TEXT,
    failure TEXT,
    PRIMARY KEY (attempt_id, idx),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE TABLE scores (
    id BIGSERIAL NOT NULL,
    attempt_id BIGINT NOT NULL,
    grading_id VARCHAR COLLATE "C" NOT NULL,
    kind VARCHAR COLLATE "C" NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
    turn INTEGER,
    turns INTEGER,
    state VARCHAR COLLATE "C" NOT NULL,
    value DOUBLE PRECISION,
    reason TEXT,
    submission TEXT,
    ground_truth TEXT,
    extra TEXT,
    failure TEXT,
    usage TEXT,
    fingerprint VARCHAR COLLATE "C",
    passed INTEGER,
    raw TEXT,
    confidence DOUBLE PRECISION,
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
    grading_id VARCHAR COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    attempt_id BIGINT NOT NULL,
    state VARCHAR COLLATE "C" NOT NULL,
    rank DOUBLE PRECISION NOT NULL,
    lowest DOUBLE PRECISION,
    skips INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    seconds DOUBLE PRECISION,
    tags TEXT,
    target VARCHAR COLLATE "C",
    trial INTEGER,
    tokens BIGINT,
    cost DOUBLE PRECISION,
    cause VARCHAR COLLATE "C",
    PRIMARY KEY (grading_id, position, attempt_id),
    FOREIGN KEY(grading_id) REFERENCES gradings (id)
);

CREATE INDEX standings_by_cause ON standings (grading_id, cause, target, position, attempt_id) WHERE cause IS NOT NULL;

CREATE TABLE passages (
    id BIGSERIAL NOT NULL,
    attempt_id BIGINT NOT NULL,
    grading_id VARCHAR COLLATE "C" NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE INDEX passages_by_attempt ON passages (attempt_id);

ALTER TABLE passages ADD COLUMN words tsvector NOT NULL;

CREATE INDEX passages_by_word ON passages USING gin (words);

CREATE TABLE labels (
    id BIGSERIAL NOT NULL,
    attempt_id BIGINT NOT NULL,
    turn INTEGER,
    grader VARCHAR COLLATE "C" NOT NULL,
    author VARCHAR COLLATE "C" NOT NULL,
    verdict VARCHAR COLLATE "C" NOT NULL,
    note TEXT,
    blind INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    drawn DOUBLE PRECISION,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE UNIQUE INDEX labels_by_attempt ON labels (attempt_id, grader, author, coalesce(turn, -1));

CREATE TABLE comments (
    id BIGSERIAL NOT NULL,
    attempt_id BIGINT NOT NULL,
    turn INTEGER,
    author VARCHAR COLLATE "C" NOT NULL,
    text TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    resolved_by VARCHAR COLLATE "C",
    resolved_at DOUBLE PRECISION,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE INDEX comments_by_attempt ON comments (attempt_id);

CREATE TABLE decisions (
    id BIGSERIAL NOT NULL,
    attempt_id BIGINT NOT NULL,
    turn INTEGER,
    grader VARCHAR COLLATE "C" NOT NULL,
    author VARCHAR COLLATE "C" NOT NULL,
    verdict VARCHAR COLLATE "C" NOT NULL,
    note TEXT,
    blind INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE UNIQUE INDEX decisions_by_attempt ON decisions (attempt_id, grader, coalesce(turn, -1));

CREATE TABLE queues (
    id VARCHAR COLLATE "C" NOT NULL,
    run_id VARCHAR COLLATE "C" NOT NULL,
    grading_id VARCHAR COLLATE "C" NOT NULL,
    grader VARCHAR COLLATE "C" NOT NULL,
    selection VARCHAR COLLATE "C" NOT NULL,
    seed BIGINT NOT NULL,
    blind INTEGER NOT NULL,
    overlap INTEGER NOT NULL,
    author VARCHAR COLLATE "C" NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES runs (id),
    FOREIGN KEY(grading_id) REFERENCES gradings (id)
);

CREATE INDEX queues_by_run ON queues (run_id);

CREATE TABLE queue_items (
    queue_id VARCHAR COLLATE "C" NOT NULL,
    person VARCHAR COLLATE "C" NOT NULL,
    position INTEGER NOT NULL,
    attempt_id BIGINT NOT NULL,
    drawn DOUBLE PRECISION,
    PRIMARY KEY (queue_id, person, position),
    FOREIGN KEY(queue_id) REFERENCES queues (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id)
);

CREATE INDEX queue_items_by_attempt ON queue_items (attempt_id);

CREATE INDEX queue_items_by_person ON queue_items (person)
