/** `roomd screen` and `roomd computer`: pictures of a sandbox's screen, tickets to see it live, and its keyboard and mouse. */
import { writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import {
  COMPUTER_ACTIONS,
  type ComputerAction,
  computer,
  SCROLL_DIRECTIONS,
  screenGet,
  screenTicket,
} from "../../../../shared/api/screen.ts";
import { pathOf } from "../../../../shared/places.ts";
import { errnoOf } from "../../../core/service-error.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call, download } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { findConnection } from "../../kit/connection.ts";
import { bytesText, fieldLines, type JsonOption, say, show, showValue, write } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { integer, milliseconds, numbers } from "../../kit/values.ts";

const WIDTH = "width of the picture; the screen's own if absent or larger than that";
const NO_PICTURE = "The action was done, and there is no picture of it now: take one with `roomd screen`.";
/** Actions with a picture as their only result. */
const PICTURES: readonly ComputerAction[] = ["screenshot", "zoom"];

interface ScreenOptions extends JsonOption {
  output?: string;
  width?: number;
  ticket?: true;
  drive?: true;
}

export function screenCommand(): Command {
  return command("screen <room> <agent>", {
    summary: "take a picture of a sandbox's screen, as PNG, or a ticket to see it live",
    notes: [
      "The sandbox needs a template with a screen, such as desktop.",
      "A ticket opens the screen for 10 minutes to any viewer that speaks RFB by WebSocket. With --drive the viewer's input reaches",
      "the screen: enter this ticket on the hub's page, under Drive it.",
    ],
    examples: [
      "roomd screen build-42 worker-1 --output screen.png",
      "roomd screen build-42 worker-1 --width 640 > small.png",
      "roomd screen build-42 worker-1 --ticket --drive",
    ],
  })
    .option("--output <file>", "write the picture there; standard output if absent")
    .addOption(new Option("--width <pixels>", WIDTH).argParser(integer(1)))
    .addOption(new Option("--ticket", "print a ticket to see it live").conflicts(["output", "width"]))
    .option("--drive", "accept keys, pointer and clipboard from the ticket's holder")
    .action(async (room_id: string, sandbox: string, options: ScreenOptions) => {
      const { output, width } = options;
      if (options.drive && !options.ticket) throw new CliError("--drive needs --ticket.", EXIT.usage);
      if (options.ticket) return await showTicket(room_id, sandbox, options);
      if (output === undefined && (process.stdout.isTTY || options.json)) throw noFile();
      const picture = await download(screenGet, { room_id, sandbox, width });
      const png = await withProgress("reading the picture", () => picture.bytes());
      if (output === undefined) return await write(process.stdout, png);
      save(output, png);
      const value = { local: output, size_bytes: png.byteLength };
      await showValue(value, options, () => [`wrote ${output}, ${bytesText(png.byteLength)}`]);
    });
}

async function showTicket(room_id: string, sandbox: string, options: ScreenOptions): Promise<void> {
  const { value } = await call(screenTicket, { room_id, sandbox, drive: options.drive });
  const { url } = await findConnection();
  const page = `${url}${pathOf({ type: "agent", id: sandbox, room_id, agent_id: sandbox })}/screen`;
  await showValue(value.drives ? { ...value, page } : value, options, fieldLines);
}

interface ComputerOptions extends JsonOption {
  coordinate?: number[];
  start?: number[];
  text?: string;
  key?: string;
  direction?: (typeof SCROLL_DIRECTIONS)[number];
  amount?: number;
  duration?: number;
  region?: number[];
  width?: number;
  output?: string;
}

export function computerCommand(): Command {
  return command("computer <room> <agent> <action>", {
    summary: "use a sandbox's screen, keyboard and mouse",
    notes: [
      `Actions: ${COMPUTER_ACTIONS.join(", ")}.`,
      "Coordinates are those of a picture of the requested width. With --output or --json there is a picture, taken once the",
      "screen is still.",
    ],
    examples: [
      "roomd computer build-42 worker-1 left_click --coordinate 640,400 --output after.png",
      "roomd computer build-42 worker-1 type --text 'hello world'",
      "roomd computer build-42 worker-1 key --text ctrl+c",
      "roomd computer build-42 worker-1 scroll --direction down --amount 5",
    ],
  })
    .addOption(new Option("--coordinate <x,y>", "where").argParser(numbers(2)))
    .addOption(new Option("--start <x,y>", "start of a drag").argParser(numbers(2)))
    .option("--text <text>", "text to type, or names of the keys")
    .option("--key <keys>", "keys that are held during a click, a drag or a scroll")
    .addOption(choice("--direction <direction>", "scroll direction", SCROLL_DIRECTIONS))
    .addOption(new Option("--amount <notches>", "how far to scroll").argParser(integer(1)))
    .addOption(new Option("--duration <time>", "how long to wait, or to hold keys").argParser(milliseconds))
    .addOption(new Option("--region <left,top,right,bottom>", "region to zoom in on").argParser(numbers(4)))
    .addOption(new Option("--width <pixels>", WIDTH).argParser(integer(1)))
    .option("--output <file>", "write the picture there, as PNG")
    .action(async (room_id: string, sandbox: string, given: string, options: ComputerOptions) => {
      const { output, json = false } = options;
      const action = COMPUTER_ACTIONS.find((each) => each === given);
      if (!action) throw new CliError(`${given} is not one of ${COMPUTER_ACTIONS.join(", ")}.`, EXIT.usage);
      const wantsPicture = output !== undefined || json;
      if (!wantsPicture && PICTURES.includes(action)) throw noFile();
      const reply = await call(computer, {
        room_id,
        sandbox,
        action,
        coordinate: options.coordinate,
        start_coordinate: options.start,
        text: options.text,
        key: options.key,
        scroll_direction: options.direction,
        scroll_amount: options.amount,
        duration_ms: options.duration,
        region: options.region,
        width: options.width,
        screenshot: wantsPicture,
      });
      const { screenshot_b64, ...done } = reply.value;
      const saves = output !== undefined && screenshot_b64 !== null;
      if (saves) save(output, Buffer.from(screenshot_b64, "base64"));
      await show(reply, options, () => fieldLines({ ...done, ...(saves ? { local: output } : {}) }));
      if (wantsPicture && screenshot_b64 === null) await say(NO_PICTURE);
    });
}

function noFile(): CliError {
  return new CliError("Name a file for the picture with --output.", EXIT.usage);
}

function save(file: string, png: Uint8Array): void {
  try {
    writeFileSync(file, png);
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${errnoOf(error) ?? String(error)}.`);
  }
}
