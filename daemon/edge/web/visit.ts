/** Owns a visit: a request for a page as the web's door sees it, and what it may ask of the road. */
import type { InputOf, Operation, OutputOf } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { type Bound, type Caller, NO_TRANSFER } from "../../core/operation.ts";
import type { Road } from "../run.ts";

/** A request as the HTTP door hands it over. */
export interface Asked {
  method: string;
  url: URL;
  headers: Headers;
  ip: string | null;
  request_id: string;
  signal: AbortSignal;
  /** Throws body_too_large, invalid_body. */
  body(maxBytes: number): Promise<Uint8Array>;
}

export type Answer<Op extends Operation> =
  | { ok: true; body: OutputOf<Op>; replayed: boolean }
  | { ok: false; problem: Problem };

type Input<Op extends Operation> = Partial<InputOf<Op>> & Record<string, unknown>;

export interface Visit {
  asked: Asked;
  /** Who is signed in; null: nobody is. */
  caller: Caller | null;
  /** Fields of the form that was sent. */
  form: ReadonlyMap<string, string>;
  /** Asks an operation of the list for who is signed in. `once` is its Idempotency-Key. Never throws. */
  call<Op extends Operation>(operation: Op, input?: Input<Op>, once?: string | null): Promise<Answer<Op>>;
}

export function makeCall(
  road: Road,
  operations: readonly Bound[],
  asked: Asked,
  recognise: () => Caller,
): Visit["call"] {
  return async (operation, input = {}, once = null) => {
    const bound = operations.find((each) => each.operation.name === operation.name);
    if (!bound) throw new Error(`there is no operation ${operation.name}`);
    const names = Object.keys(operation.params.properties);
    const entries = Object.entries(input).filter(([, value]) => value !== undefined);
    const isParam = ([name]: [string, unknown]) => names.includes(name);
    const params = Object.fromEntries(entries.filter(isParam).map(([name, value]) => [name, String(value)]));
    const rest = Object.fromEntries(entries.filter((entry) => !isParam(entry)));
    const hasBody = operation.body !== null;
    const reply = await road.run(bound, {
      source: "web",
      request_id: asked.request_id,
      ip: asked.ip,
      authorization: null,
      token: null,
      recognise,
      path: operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? "")),
      params,
      query: () =>
        hasBody ? {} : Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)])),
      body: async () => ({ fields: hasBody ? rest : {}, sha256: hasBody ? digestOf(rest) : "" }),
      idempotency_key: once,
      transfer: NO_TRANSFER,
      signal: asked.signal,
    });
    if (reply.kind === "problem") return { ok: false, problem: reply.problem };
    return { ok: true, body: reply.done.body as OutputOf<typeof operation>, replayed: reply.replayed };
  };
}

const digestOf = (fields: object): string =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(fields)).digest("hex");
