/** Reads a call's fields: the body up to the operation's limit, then their shapes, then the noun's own rules. */
import { DEFAULT_MAX_BODY_BYTES, type Operation } from "../../../shared/api/contract.ts";
import type { Bound, RuleBreak } from "../../core/call/operation.ts";
import { type MaybePromise, whenResolved } from "../../core/concurrency/maybe-promise.ts";
import { brokenRules, type InputCheck, makeInputCheck } from "./input.ts";
import type { PipelineRequest } from "./request-context.ts";

type ReadBody = Awaited<ReturnType<PipelineRequest["body"]>>;

export interface ReadInput {
  input: Record<string, unknown>;
  body_sha256: string;
}

const NO_BODY = { fields: {}, sha256: "" };

/**
 * The reader throws, or rejects with, the errors of query and body, and validation_failed and the like for all invalid fields together. It
 * is synchronous if there is no body.
 */
export function makeInputReader() {
  const checks = new Map<Operation, InputCheck>();
  const checkOf = (operation: Operation): InputCheck => {
    const check = checks.get(operation) ?? makeInputCheck(operation);
    checks.set(operation, check);
    return check;
  };
  const read = (bound: Bound, request: PipelineRequest, target: unknown, body: ReadBody): MaybePromise<ReadInput> => {
    const { input, bad: misshapen } = checkOf(bound.operation).check(request.params, request.query(), body.fields);
    return whenResolved(bound.rules(input, target, misshapen), (broken) => {
      requireUnbroken(misshapen, broken);
      return { input, body_sha256: body.sha256 };
    });
  };
  return (bound: Bound, request: PipelineRequest, target: unknown, over?: AbortSignal): MaybePromise<ReadInput> => {
    const { body, maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = bound.operation;
    if (body === null || body === "bytes") return read(bound, request, target, NO_BODY);
    return request.body(maxBodyBytes, over).then((given) => read(bound, request, target, given));
  };
}

/** Throws validation_failed and the like. */
function requireUnbroken(misshapen: readonly RuleBreak[], broken: readonly RuleBreak[]): void {
  if (misshapen.length === 0 && broken.length === 0) return;
  throw brokenRules([...misshapen.filter(({ field }) => !broken.some((rule) => rule.field === field)), ...broken]);
}
