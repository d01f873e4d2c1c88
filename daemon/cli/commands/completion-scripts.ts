/**
 * The scripts of `roomd completion`, one for each shell. All do the same: find the command from the words before the cursor, then offer the
 * values of the preceding option, the command's options, its subcommands, names from the service, or files.
 */
import { quoted } from "../../../shared/shell.ts";
import { NAMES_COMMAND } from "./completion-names.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

interface CompletedOption {
  flags: string[];
  about: string;
  takesValue: boolean;
  /** The allowed values, if they are a closed set. */
  choices: readonly string[];
}

export interface CompletedCommand {
  /** Names of the command's ancestors and its own: `room create`; "" is the program itself. */
  words: string;
  commands: { word: string; about: string }[];
  options: CompletedOption[];
  /** Allowed words for its arguments, if they are a closed set. */
  choices: readonly string[];
  /** Its arguments for which the service can list names. */
  named: readonly string[];
}

export function scriptFor(shell: Shell, commands: readonly CompletedCommand[]): string {
  return { bash, zsh, fish }[shell](commands);
}

const namesOf = (commands: readonly CompletedCommand[]) => commands.map(({ words }) => words).filter(Boolean);
const flagsOf = ({ options }: CompletedCommand) => options.flatMap(({ flags }) => flags);
const offersOf = ({ commands, choices }: CompletedCommand) => [...commands.map(({ word }) => word), ...choices];

/** Every option with a closed set of values: the patterns that match it in a `case`, and the values. */
function* closedOptions(commands: readonly CompletedCommand[]): Generator<{ pattern: string; choices: string }> {
  for (const { words, options } of commands) {
    for (const { flags, choices } of options.filter((each) => each.choices.length > 0)) {
      yield { pattern: flags.map((flag) => quoted(`${words} ${flag}`)).join(" | "), choices: choices.join(" ") };
    }
  }
}

/** Options that take an arbitrary value: the word after them is not completed with commands or options. */
function openOptions(commands: readonly CompletedCommand[]): string {
  const open = commands.flatMap(({ words, options }) =>
    options
      .filter(({ takesValue, choices }) => takesValue && choices.length === 0)
      .flatMap(({ flags }) => flags.map((flag) => quoted(`${words} ${flag}`))),
  );
  return open.join(" | ");
}

/** The commands with such arguments, as alternatives of a `case`: with local files in addition to the names, or without. */
function namedCommands(commands: readonly CompletedCommand[], hasFiles: boolean): string {
  const found = commands.filter(({ named }) => named.length > 0 && named.some(isOfBoth) === hasFiles);
  return found.map(({ words }) => quoted(words)).join(" | ");
}

/** Whether an argument may also be a local file. */
const isOfBoth = (argument: string) => argument === "src" || argument === "dst";

function bash(commands: readonly CompletedCommand[]): string {
  return `# bash completion of roomd
_roomd_names() {
  mapfile -t COMPREPLY < <(roomd ${NAMES_COMMAND} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
  if [[ \${COMPREPLY[*]: -1} == */ ]]; then compopt -o nospace 2>/dev/null || true; fi
}
_roomd() {
  local command='' word offers='' current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  # bash makes --state=active three words.
  if [[ $current == = ]]; then current=''
  elif [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    [[ $word == -- ]] && return
    case "\${command:+$command }$word" in
      ${namesOf(commands).map(quoted).join(" | ")}) command+=\${command:+ }$word ;;
    esac
  done
  case "$command $previous" in
${[...closedOptions(commands)].map(({ pattern, choices }) => `    ${pattern}) offers=${quoted(choices)} ;;`).join("\n")}
    ${openOptions(commands)}) return ;;
    *)
      case "$command" in
${commands
  .map(
    (each) =>
      `        ${quoted(each.words)}) [[ $current == -* ]] && offers=${quoted(flagsOf(each).join(" "))} || offers=${quoted(offersOf(each).join(" "))} ;;`,
  )
  .join("\n")}
      esac
      [[ $current == -* ]] || case "$command" in
        ${namedCommands(commands, false)}) _roomd_names; return ;;
        ${namedCommands(commands, true)}) _roomd_names; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current"); return ;;
      esac
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$offers" -- "$current")
}
complete -o default -F _roomd roomd
`;
}

function zsh(commands: readonly CompletedCommand[]): string {
  const described = (word: string, about: string) => quoted(`${word.replaceAll(":", "\\:")}:${about}`);
  return `#compdef roomd
_roomd_names() {
  local -a names
  names=("\${(@f)$(roomd ${NAMES_COMMAND} -- "\${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)}")
  compadd -- \${names:#*/}
  compadd -S '' -- \${(M)names:#*/}
}
_roomd() {
  local command='' word current=\${words[CURRENT]} previous=\${words[CURRENT - 1]}
  local -a offers
  for word in "\${(@)words[2,CURRENT - 1]}"; do
    [[ $word == -- ]] && { _files; return }
    case "\${command:+$command }$word" in
      (${namesOf(commands).map(quoted).join(" | ")}) command+="\${command:+ }$word" ;;
    esac
  done
  case "$command $previous" in
${[...closedOptions(commands)].map(({ pattern, choices }) => `    (${pattern}) compadd -- ${choices}; return ;;`).join("\n")}
    (${openOptions(commands)}) _files; return ;;
  esac
  case "$command" in
${commands
  .map((each) => {
    const flags = each.options.flatMap(({ flags: own, about }) => own.map((flag) => described(flag, about)));
    const words = [
      ...each.commands.map(({ word, about }) => described(word, about)),
      ...each.choices.map((choice) => described(choice, choice)),
    ];
    return `    (${quoted(each.words)}) if [[ $current == -* ]]; then offers=(${flags.join(" ")}); else offers=(${words.join(" ")}); fi ;;`;
  })
  .join("\n")}
  esac
  if [[ $current != -* ]]; then
    case "$command" in
      (${namedCommands(commands, false)}) _roomd_names; return ;;
      (${namedCommands(commands, true)}) _roomd_names; _files; return ;;
    esac
  fi
  if (( $#offers )); then _describe -t commands roomd offers; else _files; fi
}
if [[ $funcstack[1] == _roomd ]]; then _roomd "$@"; else compdef _roomd roomd; fi
`;
}

function fish(commands: readonly CompletedCommand[]): string {
  // Within single quotes, fish recognizes only the escapes \\\\ and \\'.
  const word = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = commands.flatMap((each) => {
    const when = `complete -c roomd -n ${word(`__roomd_at ${word(each.words)}`)}`;
    const isGroup = each.commands.length > 0 || each.choices.length > 0;
    return [
      ...each.commands.map(({ word: name, about }) => `${when} -f -a ${name} -d ${word(about)}`),
      ...(each.named.length > 0 ? [`${when} ${each.named.some(isOfBoth) ? "" : "-f "}-a '(__roomd_names)'`] : []),
      ...(each.choices.length > 0 ? [`${when} -f -a ${word(each.choices.join(" "))}`] : []),
      ...each.options.map(({ flags, about, takesValue, choices }) => {
        const names = flags.map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
        const value = choices.length > 0 ? [`-x -a ${word(choices.join(" "))}`] : takesValue ? ["-r"] : [];
        return [when, ...(isGroup ? ["-f"] : []), ...names, ...value, `-d ${word(about)}`].join(" ");
      }),
    ];
  });
  return `# fish completion of roomd
function __roomd_at
    set -l found
    for each in (commandline -opc)[2..-1]
        test "$each" = -- && return 1
        contains -- "$(string join -- ' ' $found $each)" ${namesOf(commands).map(word).join(" ")} && set -a found $each
    end
    test "$(string join -- ' ' $found)" = "$argv[1]"
end
function __roomd_names
    set -l words (commandline -opc) (commandline -ct)
    roomd ${NAMES_COMMAND} -- $words[2..-1] 2>/dev/null </dev/null
end
${lines.join("\n")}
`;
}
