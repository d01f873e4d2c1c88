/** `roomd webhook`: URLs to which the organization's events are sent, and the state of their deliveries. */
import type { Command } from "commander";
import {
  DEFAULT_ROTATION_SECONDS,
  type WebhookRecord,
  webhookCreate,
  webhookDelete,
  webhookDeliveries,
  webhookGet,
  webhookList,
  webhookRedeliver,
  webhookRotate,
  webhookTestSend,
  webhookUpdate,
} from "../../../../shared/api/webhooks.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { fieldLines, type JsonOption, moreLines, show, table } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { secondsOrZero, word } from "../../kit/values.ts";

/** That of the key. */
const org_id = "self";
const WEBHOOK = "whk_01KG9YXD6P9R2T4W7Y0A3C5E8H";
const EVENT = "evt_01KG9Z2CF0H8K2N5R7T3W6Y9BD";

export function webhookCommand(setStatus: (status: number) => void): Command {
  return commandGroup("webhook", {
    summary: "URLs to which the organization's events are sent",
    examples: [
      "roomd webhook create https://example.org/hooks/roomd --type sandbox. --type room.",
      `roomd webhook test ${WEBHOOK}`,
      `roomd webhook deliveries ${WEBHOOK}`,
    ],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(get())
    .addCommand(update())
    .addCommand(remove())
    .addCommand(rotate())
    .addCommand(deliveries())
    .addCommand(redeliver())
    .addCommand(test(setStatus));
}

interface WebhookOptions extends JsonOption {
  type?: string[];
  room?: string[];
}

function create(): Command {
  return command("create <url>", {
    summary: "send events to a URL from now on; the secret that signs them is shown once",
    examples: [
      "roomd webhook create https://example.org/hooks/roomd --type sandbox. --type message.sent",
      "roomd webhook create https://example.org/hooks/roomd --type '*' --room build-42 --disabled",
    ],
  })
    .requiredOption("--type <type>", "prefix of the events' names, or * for all; repeatable", word)
    .option("--room <room>", "only events of this room; repeatable", word)
    .option("--disabled", "create it disabled")
    .action(async (url: string, { type = [], room, disabled, json }: WebhookOptions & { disabled?: boolean }) => {
      const input = { org_id, url, types: type, room_ids: room, enabled: disabled ? false : undefined };
      await show(await call(webhookCreate, input), { json }, fieldLines);
    });
}

const stateOf = ({ enabled, disabled_reason, failing_since }: WebhookRecord): string =>
  enabled ? (failing_since === null ? "enabled" : "failing") : `disabled: ${disabled_reason}`;

function list(): Command {
  const about = {
    summary: "list the organization's webhooks",
    examples: ["roomd webhook list", "roomd webhook list --json"],
  };
  return asList(command("list", about)).action(async ({ limit, cursor, json }: ListOptions) => {
    const reply = await call(webhookList, { org_id, limit, cursor });
    await show(reply, { json }, ({ items, next_cursor }) => [
      ...table(
        ["WEBHOOK", "URL", "TYPES", "ROOMS", "STATE", "SENT", "WAITING", "LAST SENT"],
        items.map((each) => [
          each.webhook_id,
          each.url,
          each.types.join(" "),
          each.room_ids === null ? "all" : each.room_ids.join(" "),
          stateOf(each),
          each.sent_count,
          each.waiting_count,
          each.last_sent_at,
        ]),
      ),
      ...moreLines(next_cursor),
    ]);
  });
}

function get(): Command {
  return command("get <webhook>", {
    summary: "show a webhook's record",
    examples: [`roomd webhook get ${WEBHOOK}`],
  }).action(async (webhook_id: string, options: JsonOption) => {
    await show(await call(webhookGet, { org_id, webhook_id }), options, recordLines);
  });
}

interface UpdateOptions extends WebhookOptions {
  url?: string;
  allRooms?: boolean;
  enable?: boolean;
  disable?: boolean;
}

function update(): Command {
  return command("update <webhook>", {
    summary: "change a webhook; when re-enabled it resumes where it stopped",
    examples: [
      `roomd webhook update ${WEBHOOK} --enable`,
      `roomd webhook update ${WEBHOOK} --url https://example.org/hooks/other --type room. --all-rooms`,
    ],
  })
    .option("--url <url>", "send to this URL")
    .option("--type <type>", "send only these events; repeatable", word)
    .option("--room <room>", "send only events of this room; repeatable", word)
    .option("--all-rooms", "send events of all rooms, and of none")
    .option("--enable", "send events again")
    .option("--disable", "send nothing until it is enabled again")
    .action(async (webhook_id: string, { url, type, room, allRooms, enable, disable, json }: UpdateOptions) => {
      if (enable && disable) throw new CliError("--enable and --disable cannot both be given.", EXIT.usage);
      if (room && allRooms) throw new CliError("--room and --all-rooms cannot both be given.", EXIT.usage);
      const enabled = enable ? true : disable ? false : undefined;
      const room_ids = allRooms ? null : room;
      const reply = await call(webhookUpdate, { org_id, webhook_id, url, types: type, room_ids, enabled });
      await show(reply, { json }, fieldLines);
    });
}

function remove(): Command {
  return command("delete <webhook>", {
    summary: "delete a webhook; undelivered events are dropped",
    examples: [`roomd webhook delete ${WEBHOOK}`],
  }).action(async (webhook_id: string, options: JsonOption) => {
    const reply = await call(webhookDelete, { org_id, webhook_id });
    await show(reply, options, (done) => [`webhook ${done.webhook_id} is ${done.state}`]);
  });
}

function rotate(): Command {
  return command("rotate <webhook>", {
    summary: "replace a webhook's secret; both sign during the grace period",
    examples: [`roomd webhook rotate ${WEBHOOK}`, `roomd webhook rotate ${WEBHOOK} --grace 0s`],
  })
    .option("--grace <time>", "how long the previous secret signs too (default: 1d)", secondsOrZero)
    .action(async (webhook_id: string, { grace, json }: JsonOption & { grace?: number }) => {
      const grace_seconds = grace ?? DEFAULT_ROTATION_SECONDS;
      await show(await call(webhookRotate, { org_id, webhook_id, grace_seconds }), { json }, fieldLines);
    });
}

function deliveries(): Command {
  const about = {
    summary: "list failed and retried deliveries",
    examples: [`roomd webhook deliveries ${WEBHOOK}`, `roomd webhook deliveries ${WEBHOOK} --limit 10 --json`],
  };
  return asList(command("deliveries <webhook>", about)).action(
    async (webhook_id: string, { limit, cursor, json }: ListOptions) => {
      const reply = await call(webhookDeliveries, { org_id, webhook_id, limit, cursor });
      await show(reply, { json }, ({ items, next_cursor }) => [
        ...table(
          ["EVENT", "TYPE", "STATE", "TRIES", "STATUS", "NEXT", "ERROR"],
          items.map((each) => [
            each.delivery_id,
            each.type,
            each.state,
            each.attempts,
            each.status,
            each.next_at,
            each.error,
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    },
  );
}

function redeliver(): Command {
  return command("redeliver <webhook> <event>", {
    summary: "resend an event, even if it was delivered",
    examples: [`roomd webhook redeliver ${WEBHOOK} ${EVENT}`],
  }).action(async (webhook_id: string, delivery_id: string, options: JsonOption) => {
    const reply = await call(webhookRedeliver, { org_id, webhook_id, delivery_id });
    await show(reply, options, (event) => [`${event.type} ${event.delivery_id} is sent again`]);
  });
}

/** Exits with the status of a refusal if the receiver rejects the event. */
function test(setStatus: (status: number) => void): Command {
  return command("test <webhook>", {
    summary: "send a test event, and print the receiver's response; exit status 1 if it was not accepted",
    examples: [`roomd webhook test ${WEBHOOK}`],
  }).action(async (webhook_id: string, options: JsonOption) => {
    const reply = await call(webhookTestSend, { org_id, webhook_id });
    if (!reply.value.delivered) setStatus(EXIT.refused);
    await show(reply, options, ({ delivered, status, error, duration_ms }) => [
      delivered
        ? `The receiver accepted it: ${status}, after ${duration_ms} ms.`
        : `The receiver did not accept it. ${error}`,
    ]);
  });
}
