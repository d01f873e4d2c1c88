/**
 * A plausible request for each operation, derived from the list: its example if it has one, and the names below. `missing` and `unused`
 * list mismatches between the list and the names.
 */
import type { Operation } from "../../shared/api/contract.ts";
import { operations } from "../../shared/api/operations.ts";

export interface Names {
  room_id: string;
  org_id: string;
}

/** Values that no schema provides: path parameters and required query parameters. */
const VALUES: Record<string, (names: Names) => string> = {
  room_id: ({ room_id }) => room_id,
  source_room_id: ({ room_id }) => room_id,
  org_id: ({ org_id }) => org_id,
  org_name: () => "none",
  email: () => "nobody@example.org",
  sandbox: () => "worker-1",
  terminal_id: () => "ter_none",
  recording_id: () => "rec_none",
  snapshot_id: () => "snap_none",
  checkpoint_id: () => "chk_none",
  key_id: () => "kid_none",
  ssh_key_id: () => "ssk_none",
  webhook_id: () => "whk_none",
  delivery_id: () => "evt_none",
  access_id: () => "ssa_none",
  session_id: () => "ses_none",
  grant_id: () => "kid_none",
  passkey_id: () => "pky_none",
  identity_id: () => "idn_none",
  user_id: () => "usr_none",
  invitation_id: () => "lnk_none",
  checkout_id: () => "cs_none",
  template_id: () => "default",
  build_id: () => "bld_none",
  exec_id: () => "build-1",
  agent_id: () => "planner",
  message_id: () => "no-message",
  barrier_id: () => "no-barrier",
  port: () => "8000",
  path: () => "notes.txt",
  id: () => "no-id",
  host: () => "no-host",
};

export const OPERATIONS: readonly Operation[] = Object.values(operations);

/** Operations that a key may call: the others are of a person's account, and require a session. */
export const OF_KEYS = OPERATIONS.filter(({ access }) => access !== "account");

export interface TestRequest {
  method: string;
  path: string;
  body: string | undefined;
  headers: Record<string, string>;
}

/** `other` are path parameters that have another value. */
export function requestOf(operation: Operation, names: Names, other: Record<string, string> = {}): TestRequest {
  const textOf = (name: string) => encodeURIComponent(other[name] ?? VALUES[name]?.(names) ?? "");
  const path = operation.path.replaceAll(/\{(\w+)\*?\}/g, (_, name: string) => textOf(name));
  const given = Object.entries(operation.example?.query ?? {}).map(([name, text]) => `${name}=${text}`);
  const query = [...requiredQuery(operation).map((name) => `${name}=${textOf(name)}`), ...given];
  const isJson = operation.body !== null && operation.body !== "bytes";
  return {
    method: operation.method,
    path: query.length === 0 ? path : `${path}?${query.join("&")}`,
    body: isJson ? JSON.stringify(operation.example?.body) : operation.body === "bytes" ? "bytes" : undefined,
    headers: isJson ? { "content-type": "application/json" } : {},
  };
}

const requiredQuery = (operation: Operation): string[] => operation.query.required ?? [];
const pathParameters = (operation: Operation): string[] => Object.keys(operation.params.properties);

/** Requirements of operations without a value here. */
export function missing(): string[] {
  return OPERATIONS.flatMap((operation) => {
    const names = [...pathParameters(operation), ...requiredQuery(operation)].filter((name) => !(name in VALUES));
    const needsExample = operation.body !== null && operation.body !== "bytes" && !operation.example?.body;
    return [...names, ...(needsExample ? ["an example of its body"] : [])].map((item) => `${operation.name}: ${item}`);
  });
}

/** Values here that no operation requires. */
export function unused(): string[] {
  const needed = new Set(
    OPERATIONS.flatMap((operation) => [...pathParameters(operation), ...requiredQuery(operation)]),
  );
  return Object.keys(VALUES).filter((name) => !needed.has(name));
}
