/**
 * A user's login to a room of this host, and their commands and ports there: each is an operation that passes the pipeline. The client is
 * connected to this host's gateway, or to another host's, which forwards the proof of identity.
 */
import { utils } from "ssh2";
import type { Problem } from "../../../shared/api/errors.ts";
import { newId, type OrgId } from "../../../shared/ids.ts";
import { type Bound, type Caller, NO_TRANSFER } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Credential, HeldSandbox, LoggedIn, Ssh } from "../../domain/ssh/index.ts";
import type { LiveCommand } from "../../host/guest-link/command.ts";
import type { GuestPort } from "../../host/guest-link/connect.ts";
import type { Pipeline, PipelineRequest } from "../pipeline/pipeline.ts";
import { SIGNATURES } from "./algorithms.ts";
import type { Opening, SessionKind } from "./session-opening.ts";

export interface Names {
  room_id: string;
  sandbox: string;
}

export interface SshUser {
  names: Names;
  ip: string | null;
  /** The client's version text. */
  client: string;
  /** Set if the client is connected to another host. */
  hop?: 1;
  gone: AbortSignal;
  /** Ends the connection, with a sentence for the user. */
  cut(why: string): void;
}

export interface SessionDeps {
  ssh: Ssh;
  road: Pipeline;
}

/** A login by a public key, as the client has made it. */
export interface SignedLogin {
  algorithm: string;
  key: Buffer;
  /** The signed data. */
  blob: Buffer;
  signature: Buffer;
}

const LONGEST_USER = 300;

export class SessionContext implements Opening {
  readonly #deps: SessionDeps;
  readonly #visitor: SshUser;
  readonly #over = Promise.withResolvers<Record<string, unknown>>();
  readonly #opened: Record<string, number> = {};
  #held: HeldSandbox | null = null;
  #in = 0;
  #out = 0;

  constructor(deps: SessionDeps, visitor: SshUser) {
    this.#deps = deps;
    this.#visitor = visitor;
  }

  /** The organization that it is counted for; null before a login on this host. */
  get orgId(): OrgId | null {
    return this.#held?.credential.caller.org_id ?? null;
  }

  readonly countIn = (bytes: number): void => {
    this.#in += bytes;
  };

  readonly countOut = (bytes: number): void => {
    this.#out += bytes;
  };

  /**
   * The credentials that open this room, one for each organization that has the key; empty if the signature is invalid, or no credential
   * opens it.
   */
  opening(signed: SignedLogin): Credential[] {
    const known = this.knownBy(signed);
    if (known.length === 0 || !isSigned(signed)) return [];
    return known.filter((each) => this.#deps.ssh.verbs.opens(each, { ...this.#visitor.names }));
  }

  /** The credentials of a public key, without proof of possession. */
  knownBy({ algorithm, key }: Pick<SignedLogin, "algorithm" | "key">): Credential[] {
    return SIGNATURES.includes(algorithm) ? this.#deps.ssh.byPublicKey(key) : [];
  }

  /** `forward` logs in at the host that has the room. Resolves to the problem of a refusal, or null. */
  async login(credential: Credential, forward?: PipelineRequest["forward"]): Promise<Problem | null> {
    const { ssh } = this.#deps;
    const { client, ip, cut, gone } = this.#visitor;
    const taken: LoggedIn[] = [];
    const bound = ssh.verbs.login(credential, client, (session) => void taken.push(session));
    const refused = await this.#walk(bound, {}, () => credential.caller, forward);
    const [session] = taken;
    if (refused || !session || gone.aborted) return refused;
    const { sandbox_id, facts } = session;
    this.#held = { sandbox_id, credential };
    ssh.sessions.keep({ credential, sandbox_id, facts, ip, cut, over: this.#over.promise });
    return null;
  }

  /** Records the user of a failed attempt. */
  record(error: unknown): void {
    this.#deps.road.identify({
      ...this.#request("ssh_login", {}),
      recognise: () => {
        throw error;
      },
    });
  }

  begin(
    kind: SessionKind,
    fields: Record<string, unknown>,
    take: (command: LiveCommand) => void,
  ): Promise<string | null> {
    return this.#ask(this.#deps.ssh.verbs[kind](this.#heldNow, take), fields);
  }

  forward(fields: Record<string, unknown>, take: (port: GuestPort) => void): Promise<string | null> {
    return this.#ask(this.#deps.ssh.verbs.forward(this.#heldNow, take), fields);
  }

  whyLost(): string {
    return this.#deps.ssh.sessions.whyLost(this.#heldNow.sandbox_id);
  }

  /** They have gone. */
  leave(): void {
    this.#over.resolve({ opened: this.#opened, bytes_in: this.#in, bytes_out: this.#out });
  }

  get #heldNow(): HeldSandbox {
    if (!this.#held) throw new Error("no login yet");
    return this.#held;
  }

  async #ask(bound: Bound, fields: Record<string, unknown>): Promise<string | null> {
    const { credential } = this.#heldNow;
    const refused = await this.#walk(bound, fields, () => {
      if (!credential.isCurrent()) throw new ServiceError("invalid_api_key");
      return credential.caller;
    });
    const { name } = bound.operation;
    if (!refused) this.#opened[name] = (this.#opened[name] ?? 0) + 1;
    return refused?.detail ?? null;
  }

  async #walk(
    bound: Bound,
    fields: Record<string, unknown>,
    recognise: () => Caller,
    forward?: PipelineRequest["forward"],
  ): Promise<Problem | null> {
    const request = { ...this.#request(bound.operation.name, fields), recognise, forward };
    const reply = await this.#deps.road.run(bound, request);
    return reply.kind === "problem" ? reply.problem : null;
  }

  #request(path: string, fields: Record<string, unknown>): PipelineRequest {
    const { names, ip, gone, hop } = this.#visitor;
    return {
      source: "ssh",
      request_id: newId("req"),
      ip,
      hop,
      authorization: null,
      token: null,
      path,
      params: { ...names },
      query: () => ({}),
      body: async () => ({ fields, sha256: "" }),
      idempotency_key: null,
      trace: null,
      transfer: NO_TRANSFER,
      signal: gone,
    };
  }
}

/** `agent_id@room_id`; neither contains an @. */
export function namesOf(username: string): Names | null {
  const [sandbox = "", room_id = "", ...more] = username.slice(0, LONGEST_USER).split("@");
  return sandbox === "" || room_id === "" || more.length > 0 ? null : { room_id, sandbox };
}

/** Whether no other organization can have the same name: a sandbox_id is unique, an agent's name is not. */
export const isUnique = ({ sandbox }: Names): boolean => sandbox.startsWith("sbx_");

export function isSigned({ algorithm, key: data, blob, signature }: SignedLogin): boolean {
  const key = utils.parseKey(data);
  const hash = /^rsa-sha2-(\d+)$/.exec(algorithm)?.[1];
  if (key instanceof Error || Array.isArray(key)) return false;
  return key.verify(blob, signature, hash && `sha${hash}`) === true;
}
