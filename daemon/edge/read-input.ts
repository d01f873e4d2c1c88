/** Owns how a call's fields are read: the body as large as the operation lets it be, then their shapes, then the noun's own rules. */
import { DEFAULT_MAX_BODY_BYTES, type Operation } from "../../shared/api/contract.ts";
import type { Bound } from "../core/operation.ts";
import { brokenRules, type InputCheck, makeInputCheck } from "./input.ts";
import type { RoadRequest } from "./walk.ts";

export interface ReadInput {
  input: Record<string, unknown>;
  body_sha256: string;
}

/** What it makes throws what reading query and body throws, and validation_failed and the like for all bad fields at once. */
export function makeInputReader() {
  const checks = new Map<Operation, InputCheck>();
  const checkOf = (operation: Operation): InputCheck => {
    const check = checks.get(operation) ?? makeInputCheck(operation);
    checks.set(operation, check);
    return check;
  };
  return async (bound: Bound, request: RoadRequest, target: unknown): Promise<ReadInput> => {
    const { operation } = bound;
    const body =
      operation.body === null || operation.body === "bytes"
        ? { fields: {}, sha256: "" }
        : await request.body(operation.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES);
    const { input, bad: misshapen } = checkOf(operation).check(request.params, request.query(), body.fields);
    const broken = bound.rules(input, target, misshapen);
    const bad = [...misshapen.filter(({ field }) => !broken.some((rule) => rule.field === field)), ...broken];
    if (bad.length > 0) throw brokenRules(bad);
    return { input, body_sha256: body.sha256 };
  };
}
