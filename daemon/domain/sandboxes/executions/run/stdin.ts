/** Standard input in a call: checked, decoded and hashed in pieces of the event loop. */
import { MAX_STDIN_BYTES } from "../../../../../shared/api/executions.ts";
import type { OrgId } from "../../../../../shared/ids.ts";
import { type Content, decodeContent, PART_CHARACTERS } from "../../../../core/call/content.ts";
import type { RuleBreak } from "../../../../core/call/operation.ts";
import type { MaybePromise } from "../../../../core/concurrency/maybe-promise.ts";
import { loopTime, ownerOf, Pieces, type PieceTurns } from "../../../../core/loop/index.ts";

export interface Stdin {
  bytes: Uint8Array;
  sha256: string;
}

/** A field that has it. */
export interface GivenStdin extends Content {
  field: string;
}

/** Standard input of a command; null if it has none. */
export function stdinIn({ stdin, stdin_b64 }: { stdin?: string; stdin_b64?: string }): GivenStdin | null {
  if (stdin !== undefined) return { field: "stdin", text: stdin, encoding: "utf8" };
  return stdin_b64 === undefined ? null : { field: "stdin_b64", text: stdin_b64, encoding: "base64" };
}

/** Standard input of the calls of an operation. */
export class Stdins {
  readonly #operation: string;
  /** By the input of a call that was checked. */
  readonly #known = new WeakMap<object, Stdin>();

  constructor(operation: string) {
    this.#operation = operation;
  }

  /** Rules that it breaks. */
  rules(input: object, given: GivenStdin | null, orgId: OrgId): MaybePromise<RuleBreak[]> {
    if (!given) return [];
    const { field, text, encoding } = given;
    if (Buffer.byteLength(text, encoding) > MAX_STDIN_BYTES) {
      const message = `Standard input may have at most ${MAX_STDIN_BYTES} bytes in one call.`;
      return [{ field, code: "length", message }];
    }
    return this.#read(input, given, orgId).then((stdin) =>
      stdin ? [] : [{ field, code: "invalid_base64", message: `${field} is not base64.` }],
    );
  }

  /** Standard input of a valid call; null if it has none. */
  async of(input: object, given: GivenStdin | null, orgId: OrgId): Promise<Stdin | null> {
    if (!given) return null;
    const stdin = this.#known.get(input) ?? (await this.#read(input, given, orgId));
    if (!stdin) throw new Error(`${given.field} differs from the validated input`);
    return stdin;
  }

  async #read(input: object, given: GivenStdin, orgId: OrgId): Promise<Stdin | null> {
    const pieces = new Pieces(loopTime, ownerOf(orgId), this.#operation);
    const bytes = await decodeContent(given, pieces);
    if (!bytes) return null;
    const stdin = { bytes, sha256: await digestOf(bytes, pieces) };
    this.#known.set(input, stdin);
    return stdin;
  }
}

async function digestOf(bytes: Uint8Array, pieces: PieceTurns): Promise<string> {
  const digest = new Bun.CryptoHasher("sha256");
  for (let at = 0; at < bytes.length; at += PART_CHARACTERS) {
    const turn = pieces.next();
    if (turn) await turn;
    digest.update(bytes.subarray(at, at + PART_CHARACTERS));
  }
  return digest.digest("hex");
}
