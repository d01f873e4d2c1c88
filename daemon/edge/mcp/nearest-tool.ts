/** The answer to a call of an unknown tool: the nearest tool of the set, or the set that has it. */
import { TOOL_SETS } from "../../../shared/api/mcp/more-tools.ts";
import { nearestOf } from "../pipeline/input.ts";
import type { Arguments } from "./call.ts";

/** Tools for foreign names, by a word of the name. */
const MEANINGS: readonly [words: RegExp, tools: readonly string[]][] = [
  [/resume|wake|unpause/, ["sandbox_resume", "sandbox_exec", "run"]],
  [/follow|poll|attach|logs?$|get_output|wait_for_(command|exec)|kill|signal|stdin/, ["follow", "sandbox_exec"]],
  [/edit|str_replace|patch|replace/, ["edit_file", "fs_write"]],
  [
    /(delete|remove|rm|move|rename|copy)_?(file|dir)|(file|fs)_?(delete|remove|move|rename|copy)|mkdir/,
    ["run", "sandbox_exec"],
  ],
  [
    /(write|create|save|put|upload)_?(to_)?file|file_?(write|create|put|upload)|^write|upload/,
    ["write_file", "fs_write"],
  ],
  [
    /(read|get|open|view|cat|download)_?file|file_?(read|get|view)|^read|^cat$|^view|download/,
    ["read_file", "fs_read"],
  ],
  [/list_?(files|dir)|files?_?list|dir(ectory)?_?list|^ls$|^dir$|^tree$|glob|find_files/, ["list_files", "fs_list"]],
  [/expose|preview|url|port/, ["url", "sandbox_expose_port"]],
  [/fork|branch|clone/, ["sandbox_fork", "checkpoint"]],
  [/rollback|restore|undo/, ["sandbox_rollback", "checkpoint"]],
  [/snapshot|checkpoint/, ["sandbox_snapshot", "checkpoint"]],
  [/pause|hibernate|standby|suspend|sleep/, ["sandbox_hibernate"]],
  [
    /(destroy|delete|remove|kill|stop|close|terminate)_?(the_)?(sandbox|vm|machine|container)|sandbox_?(delete|remove|kill|stop|close|terminate|end)/,
    ["sandbox_destroy", "close"],
  ],
  [/(destroy|delete|remove|close|end)_?(the_)?room|room_?(delete|close|end)|^close|cleanup/, ["room_destroy", "close"]],
  [/(create|new|start|make|launch)_?(a_)?room|room_?(new|start|make)/, ["room_create", "run"]],
  [
    /(create|new|start|make|launch)_?(a_)?(sandbox|vm|machine|container|agent)|sandbox_?(new|start)/,
    ["sandbox_create", "run"],
  ],
  [/exec|run|bash|shell|command|terminal|python|code|eval|install|process/, ["sandbox_exec", "run"]],
  [
    /sandbox(es)?_?(list|get|info|status|ls)|(list|get|describe)_?(the_)?(sandbox|vm|machine|container|agent)/,
    ["room_get", "list_files"],
  ],
  [/broadcast|fan_?out|send_(to_)?(many|all)/, ["agent_fanout"]],
  [/ask|request|rpc/, ["agent_request"]],
  [/inbox|receive|recv|messages|wait/, ["agent_wait", "follow"]],
  [/send|message|notify|post/, ["agent_send"]],
  [/barrier|arrive|sync|rendezvous/, ["barrier_arrive"]],
  [/audit|history|events|timeline/, ["audit_list"]],
  [/rooms/, ["room_list"]],
  [/room/, ["room_get"]],
  [/quota|limits|billing|credits/, ["usage"]],
  [/status|ping|ready/, ["health"]],
];

export function nearestTool(name: string, known: readonly string[]): string | null {
  const plain = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .slice(0, 128);
  // A tool of another set with similar letters, or that describes a room, has another purpose.
  const isOfOtherSet = TOOL_SETS.all.tools.has(name);
  for (const [words, tools] of MEANINGS) {
    const found = words.test(plain) ? tools.find((each) => known.includes(each)) : undefined;
    if (found !== undefined) return isOfOtherSet && found === "room_get" ? null : found;
  }
  return isOfOtherSet ? null : nearestOf(plain, known);
}

/** The refusal of an unknown tool: an answer to the model, which may call the nearest tool next. */
export function noSuchTool(name: string, known: readonly string[]): Arguments {
  const nearest = nearestTool(name, known);
  const elsewhere = TOOL_SETS.all.tools.has(name) ? " The set of tools at /mcp/all has it." : "";
  return {
    ...{ ok: false, status: 404, code: "tool_not_found", detail: `There is no tool ${name.slice(0, 64)}.${elsewhere}` },
    hint: nearest ? `Use ${nearest}; tools/list has all ${known.length}.` : `Tools: ${listed(known)}.`,
    ...(nearest ? { nearest } : {}),
  };
}

/** Maximum of listed names: a refusal takes at most 1 kB, and a client may receive it twice, as text and as structured content. */
const MAX_LISTED_CHARACTERS = 240;

/** As many names as fit. */
function listed(known: readonly string[]): string {
  let length = 0;
  const shown = known.filter((name) => {
    length += name.length + 2;
    return length <= MAX_LISTED_CHARACTERS;
  });
  const left = known.length - shown.length;
  return shown.join(", ") + (left > 0 ? `, and ${left} more in tools/list` : "");
}
