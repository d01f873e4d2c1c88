/** Context of a page's request for the web pages, with its access to the pipeline. */
import type { InputOf, Operation, OutputOf } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { type Bound, bodyOf, type Caller, jsonOf, NO_TRANSFER } from "../../core/call/operation.ts";
import type { RequestSource } from "../../domain/users/index.ts";
import type { PageRequest } from "../page-request.ts";
import type { Pipeline } from "../pipeline/pipeline.ts";
import type { SignInOptions } from "./sign-in-options.ts";

export type OperationResult<Op extends Operation> =
  | {
      ok: true;
      readonly body: OutputOf<Op>;
      /** The body as JSON text. */
      readonly json: string;
      replayed: boolean;
    }
  | { ok: false; problem: Problem };

type Input<Op extends Operation> = Partial<InputOf<Op>> & Record<string, unknown>;

export interface WebContext {
  request: PageRequest;
  /** The stored facts about its origin. */
  asked: RequestSource;
  /** The signed-in user; null: anonymous. */
  caller: Caller | null;
  isPost: boolean;
  /** A field of the submitted form; "" if absent. */
  field(name: string): string;
  form: ReadonlyMap<string, string>;
  /** Passkey options for this browser. */
  offers: SignInOptions;
  /** The same request context with the session's new secret. */
  proved(secret: string): WebContext;
  /** Calls an operation of the list as the signed-in user. `once` is its Idempotency-Key. Never throws. */
  call<Op extends Operation>(operation: Op, input?: Input<Op>, once?: string | null): Promise<OperationResult<Op>>;
}

/** `recognise` throws if no user is signed in. */
export function makeCall(
  pipeline: Pipeline,
  operations: readonly Bound[],
  { request_id, ip, signal, ask }: PageRequest,
  recognise: () => Caller,
): WebContext["call"] {
  return async (operation, input = {}, once = null) => {
    const bound = operations.find((each) => each.operation.name === operation.name);
    if (!bound) throw new Error(`there is no operation ${operation.name}`);
    const params: Record<string, string> = {};
    const rest: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(input)) {
      if (name in operation.params.properties) params[name] = String(value);
      else if (value !== undefined) rest[name] = value;
    }
    const hasBody = operation.body !== null;
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const reply = await pipeline.run(bound, {
      source: "web",
      request_id,
      ip,
      signal,
      authorization: null,
      token: null,
      recognise,
      path,
      params,
      query: () =>
        hasBody ? {} : Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)])),
      body: async () => (hasBody ? { fields: rest, sha256: digestOf(rest) } : { fields: {}, sha256: "" }),
      idempotency_key: once,
      trace: null,
      transfer: NO_TRANSFER,
      ...(ask ? { ask: (host, query, until) => ask(host, path, query, until) } : {}),
    });
    if (reply.kind === "problem") return { ok: false, problem: reply.problem };
    const { done, replayed } = reply;
    let body: OutputOf<typeof operation> | undefined;
    return {
      ok: true,
      get body() {
        body ??= bodyOf(done) as OutputOf<typeof operation>;
        return body;
      },
      get json() {
        return jsonOf(done);
      },
      replayed,
    };
  };
}

const digestOf = (fields: object): string =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(fields)).digest("hex");
