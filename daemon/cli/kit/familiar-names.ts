/** Commands and options of other programs that have differently named equivalents in roomd. */

/** roomd's equivalents of other programs' commands. */
export const COMMANDS: Record<string, string> = {
  agents: "agent list",
  attach: "execution attach",
  bash: "shell",
  cat: "cp ROOM/AGENT:PATH -",
  connect: "shell",
  console: "shell",
  create: "sandbox create",
  delete: "rm",
  destroy: "rm",
  events: "timeline ROOM` or `roomd audit follow ROOM",
  expose: "port expose",
  fork: "sandbox fork",
  history: "timeline ROOM",
  images: "template list",
  inspect: "sandbox get",
  keys: "key list",
  kill: "sandbox destroy` or, for a command, `roomd execution end",
  list: "ls",
  man: "--help",
  network: "egress network",
  pause: "sandbox standby` or `roomd sandbox hibernate",
  ports: "port list ROOM",
  pull: "template import",
  remove: "rm",
  resume: "sandbox resume",
  rooms: "room list",
  sandboxes: "sandbox list",
  snapshots: "snapshot list",
  spawn: "run",
  ssh: "shell",
  start: "sandbox resume",
  stop: "sandbox hibernate",
  templates: "template list",
  url: "port expose",
  version: "--version",
  "checkpoint create": "room checkpoint",
  "egress check": "egress why",
  "egress explain": "egress why",
  "egress test": "egress why",
  "file cat": "cp ROOM/AGENT:PATH -",
  "file get": "cp ROOM/AGENT:PATH -",
  "file put": "cp PATH ROOM/AGENT:PATH",
  "key add": "key create",
  "port add": "port expose",
  "port create": "port expose",
  "room delete": "room destroy",
  "room remove": "room destroy",
  "room rm": "room destroy",
  "sandbox delete": "sandbox destroy",
  "sandbox kill": "sandbox destroy",
  "sandbox pause": "sandbox standby` or `roomd sandbox hibernate",
  "sandbox remove": "sandbox destroy",
  "sandbox rm": "sandbox destroy",
  "sandbox start": "sandbox resume",
  "sandbox stop": "sandbox hibernate",
  "snapshot create": "sandbox snapshot",
  "ssh-key create": "ssh-key add",
  "template create": "template build",
};

const RUN_TERMINAL =
  "`roomd run` passes standard input on and has no terminal: leave it out, or use `roomd run --keep -- true` and then `roomd shell`.";

/** Explanations of other programs' options. */
export const OPTIONS: Record<string, string> = {
  "--rm": "The room of `roomd run` is removed by itself, unless --keep or --room is given.",
  "-it": RUN_TERMINAL,
  "-t": RUN_TERMINAL,
  "--tty": RUN_TERMINAL,
  "-d": "`roomd exec --background` leaves a command running.",
  "--detach": "`roomd exec --background` leaves a command running.",
  "--image": "`roomd template import NAME docker://IMAGE` makes a template of an image, and --template takes it.",
  "--ttl": "The lifetime is --max-duration of a sandbox, and --ttl of `roomd room create`.",
  "-p": "`roomd port expose` gives a port a URL.",
  "--publish": "`roomd port expose` gives a port a URL.",
  "-v": "`roomd cp -r` copies a directory into a sandbox; all sandboxes of a room share its drive at /mnt/drive.",
  "--volume": "`roomd cp -r` copies a directory into a sandbox; all sandboxes of a room share its drive at /mnt/drive.",
  "--name": "The name of a sandbox is its agent: `roomd sandbox create ROOM AGENT`.",
};

/** The hint for a rejected command line, or null. `args` is the whole line. */
export function familiarHint(detail: string, args: readonly string[]): string | null {
  const command = /^unknown command '([\w-]+)'$/.exec(detail)?.[1];
  const option = /^unknown option '(-[\w-]+)'$/.exec(detail)?.[1];
  if (option !== undefined) return Object.hasOwn(OPTIONS, option) ? (OPTIONS[option] ?? null) : null;
  if (command === undefined) return null;
  const path = [...args.slice(0, args.indexOf(command)).filter((word) => !word.startsWith("-")), command].join(" ");
  return Object.hasOwn(COMMANDS, path) ? `For that there is \`roomd ${COMMANDS[path]}\`.` : null;
}
