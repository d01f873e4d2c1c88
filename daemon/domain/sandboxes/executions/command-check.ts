/** Checks before a command is run, which both ways to run one share. */
import type { KeyCall, RuleBreak } from "../../../core/call/operation.ts";
import { type MaybePromise, whenResolved } from "../../../core/concurrency/maybe-promise.ts";
import { pathRule } from "../../drive/path.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget, type SandboxTarget } from "../find.ts";
import { type CommandInput, execRules } from "./run/rules.ts";
import { type Stdins, stdinIn } from "./run/stdin.ts";

export const commandCheck = (deps: SandboxDeps, stdins: Stdins) => ({
  find: (call: KeyCall, params: Record<string, string>): SandboxTarget => {
    call.work.effect = { started: false };
    return findTarget(deps, call, params);
  },
  rules: (input: Partial<CommandInput>, { row }: SandboxTarget): MaybePromise<RuleBreak[]> => {
    const broken = [...execRules(input), ...pathRule("output_to", input.output_to)];
    return whenResolved(stdins.rules(input, stdinIn(input), row.org_id), (ofStdin) => [...broken, ...ofStdin]);
  },
});
