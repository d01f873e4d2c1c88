import { expect, test } from "vitest";
import { type Bound, type Caller, type OpenCall, trialCall } from "../../../../daemon/core/call/operation.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import type { SandboxReach } from "../../../../daemon/domain/sandboxes/access.ts";
import type { Credential } from "../../../../daemon/domain/ssh/credentials.ts";
import { asServiceError } from "../../../../daemon/domain/ssh/errors.ts";
import { makeVerbs } from "../../../../daemon/domain/ssh/verbs.ts";
import { StreamError } from "../../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../../shared/agent-protocol/messages.ts";

const caller = { org_id: "org_1", key_id: "kid_1", agent_id: null } as Caller;
const credential: Credential = { kind: "ssh_access", id: "ssa_1", sandbox_id: "sbx_1", caller, isCurrent: () => true };
const held = { sandbox_id: "sbx_1", credential };
const identity = { method: "ssh_access", credential_id: "ssa_1" };

/** An existing sandbox with an unreachable guest. */
const sandboxes = {
  find: () => ({ room: {}, row: { sandbox_id: "sbx_1", agent_id: "worker-1" } }),
  withLink: async () => {
    throw new ServiceError("guest_unreachable");
  },
} as unknown as SandboxReach;

async function detailsOf(bound: Bound, input: object): Promise<unknown> {
  const call: OpenCall = trialCall(caller);
  const target = await bound.find(call, {});
  const transfer = {} as Parameters<Bound["run"]>[3];
  try {
    await bound.run(call, input, target, transfer);
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "guest_unreachable")) throw error;
  }
  return call.audit.details;
}

test("every record of a session has its credential, and the opened channel", async () => {
  const verbs = makeVerbs({ sandboxes, sit: () => () => {} });
  const nothing = () => {};
  const env = {};
  const screen = { term: "xterm", rows: 24, cols: 80 };
  expect(await detailsOf(verbs.login(credential, "OpenSSH", nothing), {})).toEqual({ ...identity, client: "OpenSSH" });
  const command = { command: "id", env, screen: null };
  expect(await detailsOf(verbs.exec(held, nothing), command)).toEqual({ ...identity, command: "id", screen: false });
  expect(await detailsOf(verbs.shell(held, nothing), { env, screen })).toEqual({ ...identity, screen: true });
  expect(await detailsOf(verbs.sftp(held, nothing), {})).toEqual(identity);
  const port = { host: "localhost", port: 80 };
  expect(await detailsOf(verbs.forward(held, nothing), port)).toEqual({ ...identity, ...port });
});

test("a drive that does not respond is named in the error", () => {
  const refused = new StreamError({ code: StreamErrorCode.drive_unavailable, message: "the drive does not answer" });
  const expected = {
    code: "guest_unreachable",
    options: expect.objectContaining({ detail: expect.stringContaining("/mnt/drive") }),
  };
  expect(() => asServiceError(refused)).toThrow(expect.objectContaining(expected));
});
