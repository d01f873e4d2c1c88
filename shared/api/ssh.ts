/**
 * Interface of SSH: an organization's public keys, the short-lived tokens for logging in to one sandbox, and the requests that a session
 * may open. The latter are operations of the SSH transport only: they pass the pipeline, and have no HTTP path.
 */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { REACH_ERRORS, sandboxPath } from "./sandboxes.ts";

export const MAX_SSH_KEYS = 256;
export const MAX_SSH_ACCESSES = 64;
export const MAX_ACCESS_SECONDS = 24 * 3600;
export const DEFAULT_ACCESS_SECONDS = 3600;
/** Limits of the environment variables that a session may set. */
export const MAX_SESSION_VARIABLES = 64;
export const MAX_SESSION_VARIABLE_BYTES = 4096;
export const MAX_SCREEN_ROWS_OR_COLS = 1000;

const orgPath = fields({ org_id: Type.String({ maxLength: 64, description: "The organization, or self." }) });

const sshKey = record("SshKey", {
  ssh_key_id: Type.String(),
  name: Type.String(),
  algorithm: Type.String(),
  fingerprint: Type.String({ description: "As ssh-keygen -l shows it." }),
  public_key: Type.String(),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  created_by: fields({ type: Type.String(), id: Type.String() }),
});
export type SshKeyRecord = Static<typeof sshKey>;

export const sshKeyAdd = operation({
  name: "ssh_key_add",
  extension: "ssh",
  method: "POST",
  path: "/v1/orgs/{org_id}/ssh-keys",
  summary: "Register a public key for SSH",
  description:
    "Its holder can log in to every sandbox of the organization as root. Ed25519, ECDSA, or RSA of at least 2048 bits.",
  access: "keys:write",
  params: orgPath,
  query: NONE,
  body: fields({
    public_key: Type.String({
      minLength: 1,
      maxLength: 16_384,
      description: "One line, as in a .pub file or in authorized_keys without options.",
    }),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: "The key's comment if absent." })),
    expires_in_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 * 365 * 86_400 })),
  }),
  output: sshKey,
  outcomes: { created: 201 },
  errors: ["org_not_found", "already_exists", "validation_failed", "scope_escalation", "quota_exceeded"],
  audit: "key.ssh_added",
  example: {
    body: { public_key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUoB5TV0m0d6mFwC0ZfL0nX2bq3mJm1xJdJ0rYt7yQh laptop" },
  },
});

export const sshKeyList = operation({
  name: "ssh_key_list",
  extension: "ssh",
  method: "GET",
  path: "/v1/orgs/{org_id}/ssh-keys",
  summary: "List the organization's public keys for SSH",
  access: "keys:write",
  params: orgPath,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(sshKey), next_cursor: Type.Null() }),
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "key.ssh_listed",
});

export const sshKeyRemove = operation({
  name: "ssh_key_remove",
  extension: "ssh",
  method: "DELETE",
  path: "/v1/orgs/{org_id}/ssh-keys/{ssh_key_id}",
  summary: "Remove a public key",
  description: "Sessions opened with it end.",
  access: "keys:write",
  params: fields({ ...orgPath.properties, ssh_key_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ ssh_key_id: Type.String(), fingerprint: Type.String(), state: oneOf(["removed"]) }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "key_not_found"],
  audit: "key.ssh_removed",
});

const access = {
  access_id: Type.String(),
  host: Type.String(),
  port: Type.Integer(),
  username: Type.String(),
  ssh_command: Type.String({ description: "Command line to paste; its password is the token." }),
  host_key_fingerprint: Type.String(),
  created_at: timestamp,
  expires_at: timestamp,
};

export const sshAccessCreate = operation({
  name: "ssh_access_create",
  extension: "ssh",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ssh-access",
  summary: "Make a short-lived password for SSH",
  description:
    "The token is shown once. It is valid for this sandbox only, until expires_at, and only while the key that made it is valid. Sessions opened with it end with it.",
  access: "terminal",
  params: sandboxPath,
  query: NONE,
  body: fields({
    expires_in_seconds: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_ACCESS_SECONDS, description: "3600 if absent." }),
    ),
  }),
  output: fields({ ...access, token: Type.String() }),
  outcomes: { created: 201 },
  errors: ["room_not_found", "sandbox_not_found", "room_destroying", "invalid_state", "quota_exceeded"],
  onFullDisk: true,
  secretOutput: true,
  audit: "ssh.access_created",
  example: { body: { expires_in_seconds: 600 } },
});

export const sshAccessList = operation({
  name: "ssh_access_list",
  extension: "ssh",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ssh-access",
  summary: "List the short-lived passwords of a sandbox",
  access: "terminal",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: fields({
    items: Type.Array(record("SshAccess", { ...access, sessions: Type.Integer({ description: "Open sessions." }) })),
    next_cursor: Type.Null(),
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "ssh.access_listed",
});

export const sshAccessDelete = operation({
  name: "ssh_access_delete",
  extension: "ssh",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ssh-access/{access_id}",
  summary: "Revoke a short-lived password",
  description: "Sessions opened with it end.",
  access: "terminal",
  params: fields({ ...sandboxPath.properties, access_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ access_id: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found", "key_not_found"],
  audit: "ssh.access_deleted",
});

/** Common to all operations of the SSH transport. */
const atTheDoor = {
  method: "POST",
  path: "",
  access: "terminal",
  params: sandboxPath,
  query: NONE,
  output: NONE,
  outcomes: { ok: 200 },
  errors: [],
  onFullDisk: true,
} as const;

const environment = Type.Record(Type.String(), Type.String());
const screen = nullable(
  fields({
    term: Type.String(),
    rows: Type.Integer({ minimum: 1, maximum: MAX_SCREEN_ROWS_OR_COLS }),
    cols: Type.Integer({ minimum: 1, maximum: MAX_SCREEN_ROWS_OR_COLS }),
  }),
);

export const sshLogin = operation({
  ...atTheDoor,
  name: "ssh_login",
  summary: "Log in to a sandbox",
  errors: ["room_not_found", "sandbox_not_found"],
  body: null,
  audit: "ssh.login",
});

export const sshExec = operation({
  ...atTheDoor,
  name: "ssh_exec",
  summary: "Run a command within a session",
  errors: [...REACH_ERRORS, "invalid_command", "too_many_executions"],
  body: fields({
    command: Type.String({ maxLength: 128 * 1024, pattern: "^[^\\0]*$", code: "invalid_command" }),
    env: environment,
    screen,
  }),
  audit: "ssh.exec",
});

export const sshShell = operation({
  ...atTheDoor,
  name: "ssh_shell",
  summary: "Open a login shell within a session",
  errors: [...REACH_ERRORS, "too_many_executions"],
  body: fields({ env: environment, screen }),
  audit: "ssh.shell",
});

export const sshSftp = operation({
  ...atTheDoor,
  name: "ssh_sftp",
  summary: "Move files within a session",
  errors: [...REACH_ERRORS, "too_many_executions"],
  body: fields({}),
  audit: "ssh.sftp",
});

export const sshForward = operation({
  ...atTheDoor,
  name: "ssh_forward",
  summary: "Connect to a port or a Unix socket of the guest within a session",
  errors: [...REACH_ERRORS, "port_not_listening", "source_mismatch"],
  body: fields({
    host: Type.Optional(Type.String({ maxLength: 255 })),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    path: Type.Optional(
      Type.String({ minLength: 2, maxLength: 4095, pattern: "^/", description: "Of a Unix socket." }),
    ),
  }),
  audit: "ssh.forward",
});
