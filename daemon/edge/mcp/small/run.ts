/**
 * The MCP tools `run` and `follow` of the small set: `run` runs a command in the sandbox, `follow` returns the further output of one that
 * still runs, and can give it input; both by the steps of sandbox_exec.
 */
import type { LANGUAGES } from "../../../../shared/api/mcp/small-tools.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { failed, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { exec } from "../tools/exec.ts";
import { inPlace, type PlaceInput, placeOf } from "./place.ts";

interface RunInput extends PlaceInput {
  command?: string;
  argv?: string[];
  code?: string;
  language?: (typeof LANGUAGES)[number];
  [name: string]: unknown;
}

const INTERPRETERS: Record<(typeof LANGUAGES)[number], string[]> = {
  python: ["python3", "-"],
  javascript: ["node", "-"],
  bash: ["bash", "-s"],
};

export async function run(call: ToolCall, { room, agent, code, language, ...input }: RunInput): Promise<ToolAnswer> {
  const place = placeOf(call, { ...(room ? { room } : {}), ...(agent ? { agent } : {}) });
  const given = [input.command, input.argv, code].filter((each) => each !== undefined).length;
  if (given !== 1) {
    const detail = given === 0 ? "command or code is required." : "Send one of command and code.";
    const hint = 'For example run {"command": "ls -la"} or run {"code": "print(6*7)", "language": "python"}.';
    return failed(call.refuse(new ServiceError("invalid_command", { detail, hint })));
  }
  const program: Arguments = code === undefined ? {} : { argv: INTERPRETERS[language ?? "python"], stdin: code };
  return await inPlace(call, place, () => exec(call, { ...input, ...program, ...place } as never));
}

interface FollowInput extends PlaceInput {
  run_id: string;
  input?: string;
  [name: string]: unknown;
}

export async function follow(
  call: ToolCall,
  { room, agent, run_id, input, ...more }: FollowInput,
): Promise<ToolAnswer> {
  const place = placeOf(call, { ...(room ? { room } : {}), ...(agent ? { agent } : {}) });
  const stdin = input === undefined ? {} : { stdin: input };
  return await exec(call, { ...more, ...stdin, ...place, exec_id: run_id } as never);
}
