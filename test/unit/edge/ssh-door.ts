/** The real SSH transport in front of a pipeline and guests of the test. */
import type { Socket } from "node:net";
import { Client, type ClientChannel } from "ssh2";
import { UnkeptEffects } from "../../../daemon/core/call/call-effects.ts";
import { bind, type Caller, type OpenCall } from "../../../daemon/core/call/operation.ts";
import { untraced } from "../../../daemon/core/call/traces.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { ServiceError } from "../../../daemon/core/service-error.ts";
import type { Ssh } from "../../../daemon/domain/ssh/index.ts";
import { Admission } from "../../../daemon/edge/pipeline/admission.ts";
import type { Pipeline } from "../../../daemon/edge/pipeline/pipeline.ts";
import { toProblem } from "../../../daemon/edge/pipeline/problem.ts";
import type { SshLimits } from "../../../daemon/edge/ssh/connection.ts";
import { newPrivateKey } from "../../../daemon/edge/ssh/host-key.ts";
import { type SshServer, startSshServer } from "../../../daemon/edge/ssh/listener.ts";
import type { LiveCommand } from "../../../daemon/host/guest-link/command.ts";
import type { GuestPort } from "../../../daemon/host/guest-link/connect.ts";
import { sshExec, sshForward, sshLogin, sshSftp, sshShell } from "../../../shared/api/ssh.ts";

const LIMITS: SshLimits = {
  login_grace_ms: 20_000,
  max_attempts: 6,
  max_connections: 512,
  max_connections_per_org: 128,
  max_channels: 64,
  idle_timeout_ms: 3_600_000,
};

/** A command that was started in the guest, from the test's view. */
export interface Begun {
  name: string;
  /** Number of hang-ups. */
  hungUp: number;
  /** Bytes of its output that were taken. */
  taken: number;
}

export interface Door extends AsyncDisposable {
  server: SshServer;
  begun: Begun[];
  /** The requested operations, in order. */
  asked: string[];
  /** Sessions that were kept. */
  kept: Parameters<Ssh["sessions"]["keep"]>[0][];
  /** Operations with a failing record: they are carried out, and then refused. */
  unrecorded: Set<string>;
  /** Organizations by the public keys that they have, in SSH's own encoding and base64. */
  publicKeys: Map<string, string>;
  /** Output of a command, and its handling of input. */
  output: () => AsyncIterable<Uint8Array>;
  input: (bytes: Uint8Array) => Promise<void>;
  /** Settles before a port of the guest answers. */
  dialling: Promise<unknown>;
  /** Logs in; the password is the name of an organization. */
  login(org?: string): Promise<{ client: Client; socket: Socket }>;
}

export async function openDoor(limits: Partial<SshLimits> = {}): Promise<Door> {
  const begun: Begun[] = [];
  const asked: string[] = [];
  const kept: Door["kept"] = [];
  const clients: Client[] = [];
  const log = makeLog("error", () => {});

  const begin = (name: string) => {
    const own: Begun = { name, hungUp: 0, taken: 0 };
    begun.push(own);
    const over = Promise.withResolvers<void>();
    const count = async function* (): AsyncGenerator<Uint8Array> {
      for await (const bytes of door.output()) {
        if (own.hungUp > 0) return;
        own.taken += bytes.byteLength;
        yield bytes;
      }
    };
    const hangUp = () => {
      own.hungUp++;
      over.resolve();
    };
    return { own, output: count(), over: over.promise, hangUp, write: (bytes: Uint8Array) => door.input(bytes) };
  };
  const command = (name: string): LiveCommand => {
    const { output, over, hangUp, write } = begin(name);
    const nothing = () => {};
    return {
      stdout: output,
      stderr: null,
      write,
      endInput: nothing,
      signal: nothing,
      resize: nothing,
      ended: over.then(() => ({ exit_code: 0, signal: null })),
      hangUp,
    };
  };
  const port = (): GuestPort => {
    const { output, over, hangUp, write } = begin("ssh_forward");
    return { output, write, endInput: () => {}, ended: over, close: hangUp };
  };

  const ssh = {
    byPassword: (password: string) => ({
      kind: "api_key",
      id: `kid_${password}`,
      sandbox_id: null,
      caller: { ...CALLER, org_id: `org_${password}` } as Caller,
      isCurrent: () => true,
    }),
    byPublicKey: (key: Buffer) => {
      const org = door.publicKeys.get(key.toString("base64"));
      if (org === undefined) return [];
      const caller = { ...CALLER, org_id: `org_${org}` } as Caller;
      return [{ kind: "public_key", id: `ssk_${org}`, sandbox_id: null, caller, isCurrent: () => true }];
    },
    sessions: { keep: (session: Door["kept"][number]) => void kept.push(session) },
    verbs: {
      opens: (_credential, { room_id, sandbox }) => room_id === "r" && sandbox === "worker-1",
      login: (_credential, _client, take) =>
        bind(sshLogin, {
          run: () => {
            take({ sandbox_id: "sbx_1", facts: { details: {} } });
            return { outcome: "ok", body: {} };
          },
        }),
      exec: (_session, take) =>
        bind(sshExec, {
          run: () => {
            take(command("ssh_exec"));
            return { outcome: "ok", body: {} };
          },
        }),
      shell: (_session, take) =>
        bind(sshShell, {
          run: () => {
            take(command("ssh_shell"));
            return { outcome: "ok", body: {} };
          },
        }),
      sftp: (_session, take) =>
        bind(sshSftp, {
          run: () => {
            take(command("ssh_sftp"));
            return { outcome: "ok", body: {} };
          },
        }),
      forward: (_session, take) =>
        bind(sshForward, {
          run: async () => {
            await door.dialling;
            take(port());
            return { outcome: "ok", body: {} };
          },
        }),
    } satisfies Ssh["verbs"],
  } as unknown as Ssh;

  const pipeline: Pipeline = {
    begin: new Admission(),
    run: async (bound, request) => {
      asked.push(bound.operation.name);
      try {
        const call: OpenCall = {
          ...request,
          audit: { details: {} },
          work: new UnkeptEffects(),
          trace: untraced(),
          caller: request.recognise?.() ?? null,
        };
        const target = await bound.find(call, request.params);
        const { fields } = await request.body(0);
        const done = await bound.run(call, fields, target, request.transfer);
        if (door.unrecorded.has(bound.operation.name)) throw new ServiceError("disk_full");
        return { kind: "done", status: 200, done, location: null, replayed: false, rate: null };
      } catch (error) {
        const problem = toProblem(error, request.request_id, log);
        return {
          kind: "problem",
          status: problem.status,
          problem,
          retry_after_seconds: null,
          replayed: false,
          rate: null,
        };
      }
    },
    identify: () => ({ refusal: null, rate: null }),
    recognise: (request) => request.recognise?.() as ReturnType<Pipeline["recognise"]>,
    requireAttempt: () => {},
    failuresWritten: () => Promise.resolve(),
    stop: () => {},
  };

  const server = await startSshServer(
    { ssh, road: pipeline, log, others: null, limits: { ...LIMITS, ...limits } },
    {
      hostname: "127.0.0.1",
      port: 0,
      host_key: newPrivateKey(),
      startups: { all: 100, per_address: 100 },
    },
  );
  const door: Door = {
    server,
    begun,
    asked,
    kept,
    unrecorded: new Set(),
    publicKeys: new Map(),
    output: () => silence(),
    input: async () => {},
    dialling: Promise.resolve(),
    login: async (org = "a") => {
      const client = new Client();
      clients.push(client);
      await new Promise<void>((resolve, reject) => {
        client
          .once("ready", resolve)
          .once("error", reject)
          .once("close", () => reject(new Error("closed")));
        const target = { host: "127.0.0.1", port: server.port, username: "worker-1@r", password: org };
        client.connect({ ...target, keepaliveInterval: 0 });
      });
      client.on("error", () => {});
      return { client, socket: (client as Client & { _sock: Socket })._sock };
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.destroy();
      await server.stop();
    },
  };
  return door;
}

export function exec(client: Client, command: string): Promise<ClientChannel> {
  return new Promise((resolve, reject) =>
    client.exec(command, (error, channel) => (error ? reject(error) : resolve(channel))),
  );
}

/** Output without an end. */
export async function* flood(): AsyncGenerator<Uint8Array> {
  const bytes = new Uint8Array(64 * 1024);
  for (;;) yield bytes;
}

async function* silence(): AsyncGenerator<Uint8Array> {
  await new Promise<never>(() => {});
}

const CALLER = {
  org_id: "org_a",
  key_id: "kid_a",
  name: "a",
  plan: "free",
  scopes: [],
  room_ids: null,
  agent_id: null,
  expires_at: null,
} as unknown as Caller;

/** From now on the guest takes nothing, until `take`; `taken` is how many bytes it has taken since. */
export function holdInput(door: Door): { take(): void; readonly taken: number } {
  const takes = Promise.withResolvers<void>();
  let taken = 0;
  door.input = async (bytes) => {
    await takes.promise;
    taken += bytes.byteLength;
  };
  return {
    take: () => takes.resolve(),
    get taken() {
      return taken;
    },
  };
}
