// Made by generate.ts from the OpenAPI document: change that instead.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Account: {
            user_id: string;
            email: string;
            name: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /** @description Whether the person has shown that the address is theirs. */
            email_verified: boolean;
            has_password: boolean;
            /** @description The session's current organization. */
            org_id: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
            organizations: components["schemas"]["Membership"][];
            session_id: string;
            /**
             * Format: date-time
             * @description Until this time sensitive actions are allowed; null: re-authentication is needed first.
             */
            proved_until: string | null;
        };
        AccountDeleteResult: {
            user_id: string;
            organizations_left: number;
            keys_revoked: number;
        };
        AccountExportResult: {
            user_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            exported_at: string;
            kept: {
                [key: string]: {
                    [key: string]: unknown;
                }[];
            };
        };
        AccountUpdateRequest: {
            name?: string;
            org_id?: string;
        };
        Agent: {
            agent_id: string;
            /** @description Null for an agent outside the room's sandboxes. */
            sandbox_state: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_seen_at: string | null;
            inbox_depth: number;
            waiting_on: {
                /** @enum {string} */
                type: "reply" | "barrier" | "inbox";
                /** @description Its name. */
                id: string | null;
            }[];
            topics: string[];
        };
        AgentPage: {
            items: components["schemas"]["Agent"][];
            next_cursor: string | null;
        };
        AgentSendRequest: {
            /**
             * @description The sender; in a guest always the sandbox's own agent.
             * @example worker-1
             */
            source?: string;
            /** @description The recipient; * for all others. Matches * or ^(?!sbx_)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$. */
            destination?: string | null;
            /** @description Several recipients. */
            destinations?: string[] | null;
            /** @description Words separated by dots. The message goes to the topic's subscribers. Matches ^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$. */
            topic?: string | null;
            /**
             * @description event if absent; with wait_reply request, with reply_to response.
             * @enum {string}
             */
            kind?: "event" | "request" | "response";
            /** @description message_id of the message that this replies to. */
            reply_to?: string;
            /** @description The message's name, unique in the room. */
            message_id?: string;
            /** @description Any JSON, up to 64 KiB as text. */
            payload?: unknown;
            /** @description Bytes, up to 64 KiB. */
            payload_b64?: string;
            /** @description Metadata of the message, up to 4 KiB. */
            headers?: {
                [key: string]: string;
            };
            /** @description Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable. */
            ack_required?: boolean;
            /** @description The message expires unread after this time; never if absent. */
            ttl_ms?: number;
            /** @description Wait for the reply of its one recipient. */
            wait_reply?: boolean;
            /** @description Longest wait for the reply; 5000 if absent. */
            timeout_ms?: number;
        };
        AgentSubscribeRequest: {
            topics: string[];
        };
        AgentSubscribeResult: {
            agent_id: string;
            topics: string[];
        };
        AgentWaitResult: {
            items: components["schemas"]["Message"][];
            next_cursor: string | null;
            next_after: number;
        };
        ApiKey: {
            key_id: string;
            name: string;
            /** @description The beginning of the key, to tell keys apart. */
            key_prefix: string;
            /** @enum {string} */
            state: "active" | "expired" | "revoked";
            scopes: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read" | "keys:write" | "org:admin")[];
            /** @description The only rooms that the key can see; null: all. */
            room_ids: string[] | null;
            /** @description The only agent that the key acts as; null: any. */
            agent_id: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            created_by: {
                type: string;
                id: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /** @description The key that it was rotated into. */
            replaced_by: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        ApiKeyPage: {
            items: components["schemas"]["ApiKey"][];
            next_cursor: string | null;
        };
        Application: {
            /** @description The key_id that the application's calls are recorded under. */
            grant_id: string;
            client_id: string;
            /** @description As the application calls itself. */
            client_name: string;
            /** @description Host of the redirect; null for an application with a code. */
            redirect_host: string | null;
            org_id: string;
            scopes: string[];
            room_ids: string[] | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /** @description The member that authorized it. */
            user_id: string;
            user_name: string;
        };
        ApplicationEndResult: {
            grant_id: string;
            user_id: string;
            ended: components["schemas"]["EndedMade"];
        };
        ApplicationPage: {
            items: components["schemas"]["Application"][];
            next_cursor: string | null;
        };
        AuditRecord: {
            audit_id: string;
            /** @description Position in the organization's chain. */
            seq: number;
            event: string;
            /** @enum {string} */
            outcome: "success" | "denied" | "error";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            org_id: string | null;
            room_id: string | null;
            room_uid: string | null;
            agent_id: string | null;
            sandbox_id: string | null;
            actor: {
                type: string;
                id: string;
                name: string;
            };
            /** @enum {string} */
            source: "rest" | "mcp" | "vsock" | "ssh" | "web" | "cli" | "reconciler";
            request_id: string | null;
            ip: string | null;
            status: number | null;
            error_code: string | null;
            duration_ms: number | null;
            details: {
                [key: string]: unknown;
            };
            prev_hash: string;
            hash: string;
        };
        AuditRecordPage: {
            items: components["schemas"]["AuditRecord"][];
            next_cursor: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        AuditSummary: {
            total: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            from_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            to_at: string | null;
            outcomes: {
                success: number;
                denied: number;
                error: number;
            };
            /** @description The most frequent first. */
            events: {
                event: string;
                count: number;
            }[];
            agents: {
                agent_id: string;
                count: number;
            }[];
            errors: {
                code: string;
                count: number;
            }[];
            /** @description The same as one paragraph of text. */
            text: string;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        AuditVerdict: {
            ok: boolean;
            /** @description The first record that is still kept; 0 if there is none. */
            from_seq: number;
            to_seq: number;
            /** @description The first record that breaks the chain. */
            broken_at: number | null;
        };
        Barrier: {
            /** @description The barrier's name in the room. */
            barrier_id: string;
            /** @description 1 for the first; each release is followed by the next. */
            generation: number;
            /** @enum {string} */
            state: "waiting" | "released" | "broken" | "cancelled";
            parties: number;
            arrived: string[];
            missing: string[];
            participants: string[] | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            opened_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
        };
        BarrierArriveRequest: {
            /** @description The barrier's name in the room. */
            barrier_id: string;
            /**
             * @description The arriving agent; in a guest always the sandbox's own.
             * @example worker-1
             */
            agent_id?: string;
            /** @description Several agents that arrive together. */
            arrivals?: string[];
            /** @description The same as a JSON string. */
            arrivals_json?: string;
            /** @description How many must arrive. If absent: the number of participants, else of arrivals. */
            parties?: number;
            /** @description The agents that must arrive. The barrier breaks when one of them is gone. */
            participants?: string[];
            /** @description The generation to wait for, if it may already be over. */
            generation?: number;
            /** @description Longest wait for the others; 30 000 if absent. 0: do not wait. */
            timeout_ms?: number;
        };
        BarrierArriveResult: {
            /** @description The barrier's name in the room. */
            barrier_id: string;
            /** @description 1 for the first; each release is followed by the next. */
            generation: number;
            /** @enum {string} */
            state: "waiting" | "released" | "broken" | "cancelled";
            parties: number;
            arrived: string[];
            missing: string[];
            waited_ms: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            released_at: string | null;
        };
        BarrierPage: {
            items: components["schemas"]["Barrier"][];
            next_cursor: string | null;
        };
        Billing: {
            /**
             * @description none: plans and credits come from the operator.
             * @enum {string}
             */
            provider: "none" | "stripe";
            /** @enum {string} */
            plan: "free" | "starter";
            /** @enum {string} */
            status: "none" | "active" | "past_due" | "ended" | "pending";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            period_end: string | null;
            /** @description Whether it ends with its period. */
            cancels_at_end: boolean;
            /**
             * Format: date-time
             * @description Currently known end of the plan; null: none.
             */
            plan_until: string | null;
            can_buy: boolean;
        };
        BillingCheckoutResult: {
            checkout_id: string;
            /** @description URL to open in the browser, at the payment service. */
            url: string;
        };
        BillingKeyResult: {
            key_id: string;
            name: string;
            key: string;
        };
        BillingPortalResult: {
            /** @description URL to open in the browser, at the payment service. */
            url: string;
        };
        BillingSuccessResult: {
            checkout_id: string;
            /** @description false: it is not confirmed yet. */
            is_paid: boolean;
            /** @enum {string} */
            plan: "free" | "starter";
            /** @description Of the key that it has created; null: none yet. */
            key_prefix: string | null;
        };
        BrowserGetResult: {
            /** @description For chromium.connectOverCDP of Playwright, or browserWSEndpoint of Puppeteer. */
            cdp_url: string;
            /** @description To send when connecting. */
            headers: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
        };
        BuildEvent: components["schemas"]["BuildStartedEvent"] | components["schemas"]["BuildStateEvent"] | components["schemas"]["BuildOutputEvent"] | components["schemas"]["BuildExitEvent"] | components["schemas"]["ErrorEvent"];
        BuildExitEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "exit";
            /** @description 0: the template is ready. */
            exit_code: number;
            /** @enum {string} */
            state: "ready" | "failed";
            digest: string | null;
            failure: components["schemas"]["BuildFailure"] | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finished_at: string;
            duration_ms: number;
        };
        BuildFailure: {
            code: string;
            detail: string;
            hint: string | null;
            details: {
                [key: string]: unknown;
            };
        };
        BuildOutputEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "stdout";
            data_b64: string;
        };
        BuildStartedEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "started";
            build_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
        };
        BuildStateEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "state";
            /** @enum {string} */
            state: "queued" | "pulling" | "building" | "booting" | "testing" | "ready" | "failed";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
        };
        Checkpoint: {
            /** @example chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2 */
            checkpoint_id: string;
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            name: string | null;
            /** @description One per sandbox; deleted with the checkpoint. */
            snapshots: {
                /**
                 * @description The agent that the sandbox serves; unique among the room's live sandboxes.
                 * @example worker-1
                 */
                agent_id: string;
                snapshot_id: string;
            }[];
            /** @description Size of the drive's files. */
            drive_bytes: number;
            /** @description Total size on disk: the drive, the snapshots, and data of the database. */
            size_bytes: number;
            /** @description Longest pause of a sandbox. */
            paused_ms: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
        };
        CheckpointDeleteResult: {
            checkpoint_id: string;
            /** @enum {string} */
            state: "deleted";
        };
        CheckpointPage: {
            items: components["schemas"]["Checkpoint"][];
            next_cursor: string | null;
        };
        CommandLine: {
            /** @enum {string} */
            type: "command";
            /** @enum {string} */
            state: "running" | "ended";
            agent_id: string;
            exec_id: string;
            command: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string;
        };
        ComputerRequest: {
            /**
             * @description The action.
             * @enum {string}
             */
            action: "screenshot" | "cursor_position" | "mouse_move" | "left_click" | "right_click" | "middle_click" | "double_click" | "triple_click" | "left_click_drag" | "left_mouse_down" | "left_mouse_up" | "scroll" | "key" | "hold_key" | "type" | "wait" | "zoom";
            /**
             * @description Position: [x, y]. Clicks and scroll act at the pointer's position if absent.
             * @example [
             *       640,
             *       400
             *     ]
             */
            coordinate?: number[];
            /**
             * @description Start of left_click_drag; the pointer's position if absent.
             * @example [
             *       640,
             *       400
             *     ]
             */
            start_coordinate?: number[];
            /** @description Text to type, or for key and hold_key the names of the keys. */
            text?: string;
            /** @description Keys that are held during a click, a drag or a scroll, such as shift or ctrl+alt. */
            key?: string;
            /**
             * @description Direction of scroll.
             * @enum {string}
             */
            scroll_direction?: "up" | "down" | "left" | "right";
            /** @description Notches of the mouse's wheel; 3 if absent. */
            scroll_amount?: number;
            /** @description Duration of wait or hold_key. */
            duration_ms?: number;
            /**
             * @description Region of zoom: [left, top, right, bottom].
             * @example [
             *       0,
             *       0,
             *       320,
             *       200
             *     ]
             */
            region?: number[];
            /** @description Width of the picture, which keeps its proportions; the screen's own if absent or larger than that. */
            width?: number;
            /** @description Whether the answer has a picture; true if absent, except for cursor_position. screenshot and zoom always have one. */
            screenshot?: boolean;
        };
        ComputerResult: {
            /** @enum {string} */
            action: "screenshot" | "cursor_position" | "mouse_move" | "left_click" | "right_click" | "middle_click" | "double_click" | "triple_click" | "left_click_drag" | "left_mouse_down" | "left_mouse_up" | "scroll" | "key" | "hold_key" | "type" | "wait" | "zoom";
            /** @description Of the picture of the whole screen: coordinates are smaller than this. */
            width: number;
            height: number;
            /** @description Position of the pointer: [x, y]. */
            cursor: number[];
            /** @description The picture, a PNG. null if none was requested. Except for screenshot and zoom it is also null if the action was done and its picture would be larger than 4 MiB, or too many are being taken: then take one with screenshot. */
            screenshot_b64: string | null;
        };
        ConfigGetResult: {
            version: string;
            commit: string;
            /** @description Every limit, by name. */
            limits: {
                [key: string]: number;
            };
            defaults: {
                [key: string]: string | number | boolean;
            };
            /** @description Limits of an organization on each plan. */
            plans: {
                [key: string]: components["schemas"]["Plan"];
            };
            /** @description Credits for each unit; a month is 730 hours. */
            prices: {
                [key: string]: number;
            };
            templates: components["schemas"]["Template"][];
            ssh: {
                /** @description Of the SSH gateway as clients reach it, as host:port. */
                address: string;
                /** @description The gateway's public key, as in a file known_hosts. */
                host_key: string;
                /** @description As ssh-keygen -l shows it. */
                fingerprint: string;
            } | null;
            /** @description Operations beyond the MCP tools. */
            api_extensions: string[];
            guarantees: string[];
            non_guarantees: string[];
        };
        CreditListResult: {
            /** @description Granted by the plan and in addition to it; null: no limit. */
            granted: number | null;
            used: number;
            remaining: number | null;
            items: components["schemas"]["LedgerEntry"][];
            next_cursor: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        DeadlockLine: {
            /** @enum {string} */
            type: "deadlock";
            agents: string[];
            text: string;
        };
        DeviceDecideRequest: {
            /** @description The code that the application shows. */
            user_code: string;
            allow: boolean;
            /** @description Granted subset of the requested scopes; all if absent, as far as the role allows. */
            scopes?: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read")[];
            /** @description The rooms that it is bound to; all if absent. */
            room_ids?: string[];
            /** @description Lifetime of the grant; if absent, until it is ended. */
            expires_in_seconds?: number;
        };
        DeviceDecideResult: {
            client_name: string;
            allowed: boolean;
        };
        DriveEntry: {
            path: string;
            /** @description The path's bytes, if they are not UTF-8. */
            path_b64?: string;
            name: string;
            /** @enum {string} */
            type: "file" | "directory" | "symlink" | "other";
            size_bytes: number;
            mode: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            /** @description Target of a symbolic link. */
            target?: string;
        };
        DriveStat: {
            guest_path: string;
            path: string;
            /** @description The path's bytes, if they are not UTF-8. */
            path_b64?: string;
            name: string;
            /** @enum {string} */
            type: "file" | "directory" | "symlink" | "other";
            size_bytes: number;
            mode: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            /** @description Target of a symbolic link. */
            target?: string;
        };
        Egress: {
            /** @enum {string} */
            mode: "none" | "allowlist" | "public";
            allowlist: string[];
            /** @description Number of the list's current version; each change adds one. */
            revision: number;
            /** @description false: the sandbox was created with enable_guest_net false and has no network. */
            guest_net: boolean;
            open_connections: number;
            /** @description All connections since the sandbox was created. */
            connections: number;
            sent_bytes: number;
            received_bytes: number;
        };
        EgressExplanation: {
            /** @description As it is compared: a name in lower case, without the final dot. */
            host: string;
            port: number | null;
            /**
             * @description conditional: at some ports only, or for a part of the range only.
             * @enum {string}
             */
            verdict: "allowed" | "refused" | "conditional";
            /**
             * @description Reason of the refusal. no_address: the name is on the list, but resolves to no reachable address. no_network: the sandbox has no network.
             * @enum {string|null}
             */
            reason: "not_listed" | "blocked_address" | "no_address" | "no_network" | null;
            /** @description The list's entry that matches, whether or not it is sufficient. */
            entry: string | null;
            /** @description The verdict as a sentence. */
            detail: string;
            /** @description The change that would allow it. */
            hint: string | null;
        };
        EgressSetRequest: {
            /** @description Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address. */
            allowlist: string[];
            /** @description Only if the list has this revision; else 412. */
            if_revision?: number;
        };
        EndedMade: {
            /** @description Webhooks that are disabled, with the reason `maker_ended`. */
            webhooks: number;
            /** @description Ports that are unexposed on the host that answers; those on other hosts end within a second. */
            ports: number;
            /** @description Public SSH keys that are removed. */
            ssh_keys: number;
            /** @description Applications that are signed out. */
            applications: number;
        };
        ErrorEvent: {
            /** @enum {string} */
            type: "error";
            code: string;
            detail: string;
            retryable: boolean;
        };
        EvacuatedRoom: {
            org_id: string;
            room_id: string;
            room_uid: string;
            /** @description The host that has it now; null: not moved. */
            to: string | null;
            problem: {
                code: string;
                detail: string;
            } | null;
        };
        ExecResult: {
            exec_id: string;
            /**
             * @description running only in a 202, after wait_ms.
             * @enum {string}
             */
            state: "exited" | "running";
            exit_code: number | null;
            signal: string | null;
            timed_out: boolean;
            /** @description Present and true if the kernel ended a process of the command because the sandbox ran out of memory. */
            oom?: boolean;
            stdout: string | null;
            stderr: string | null;
            stdout_b64: string;
            stderr_b64: string;
            stdout_bytes: number;
            stderr_bytes: number;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finished_at: string | null;
            /** @description While it runs: so far. */
            duration_ms: number;
            /** @description Only while it runs: the last piece of output in this answer, for after of its stream. */
            last_seq?: number;
            output: components["schemas"]["SavedOutput"] | null;
        };
        Execution: {
            exec_id: string;
            /** @enum {string} */
            state: "running" | "exited";
            /** @description The command, truncated to 1024 characters. */
            argv: string[];
            cwd: string;
            user: string;
            /** @description In the guest. */
            pid: number | null;
            /** @description null: no limit. */
            timeout_ms: number | null;
            exit_code: number | null;
            signal: string | null;
            timed_out: boolean;
            /** @description Present and true if the kernel ended a process of the command because the sandbox ran out of memory. */
            oom?: boolean;
            stdout_bytes: number;
            stderr_bytes: number;
            /** @description The oldest piece of output that is still kept; the very first one is 1. */
            oldest_seq: number;
            /** @description The last piece of output. */
            last_seq: number;
            /** @description Bytes of standard input that the command has received. */
            stdin_bytes: number;
            stdin_open: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finished_at: string | null;
            duration_ms: number | null;
            output: components["schemas"]["SavedOutput"] | null;
        };
        ExecutionEvent: components["schemas"]["OutputEvent"] | components["schemas"]["StartedEvent"] | components["schemas"]["ExitEvent"] | components["schemas"]["ErrorEvent"];
        ExecutionPage: {
            items: components["schemas"]["Execution"][];
            next_cursor: string | null;
        };
        ExecutionSignalRequest: {
            /**
             * @description SIGINT or INT, and so on.
             * @enum {string}
             */
            signal: "SIGHUP" | "HUP" | "SIGINT" | "INT" | "SIGQUIT" | "QUIT" | "SIGILL" | "ILL" | "SIGTRAP" | "TRAP" | "SIGABRT" | "ABRT" | "SIGBUS" | "BUS" | "SIGFPE" | "FPE" | "SIGKILL" | "KILL" | "SIGUSR1" | "USR1" | "SIGSEGV" | "SEGV" | "SIGUSR2" | "USR2" | "SIGPIPE" | "PIPE" | "SIGALRM" | "ALRM" | "SIGTERM" | "TERM" | "SIGCHLD" | "CHLD" | "SIGCONT" | "CONT" | "SIGSTOP" | "STOP" | "SIGTSTP" | "TSTP" | "SIGTTIN" | "TTIN" | "SIGTTOU" | "TTOU" | "SIGURG" | "URG" | "SIGXCPU" | "XCPU" | "SIGXFSZ" | "XFSZ" | "SIGVTALRM" | "VTALRM" | "SIGPROF" | "PROF" | "SIGWINCH" | "WINCH" | "SIGIO" | "IO" | "SIGPWR" | "PWR" | "SIGSYS" | "SYS";
        };
        ExecutionStartRequest: {
            /** @description The command and its arguments, run without a shell. */
            argv?: string[];
            /** @description The same as a JSON string. */
            argv_json?: string;
            /** @description A line that /bin/sh -c runs. */
            command?: string;
            /** @description Working directory in the guest. */
            cwd?: string;
            /** @description Environment variables; ROOMD_ names are reserved. */
            env?: {
                [key: string]: string;
            };
            /** @description The same as a JSON string. Not together with env. */
            env_json?: string;
            /** @description User name or id; root if absent. */
            user?: string;
            /** @description Text for standard input. */
            stdin?: string;
            /** @description Bytes for standard input. */
            stdin_b64?: string;
            /** @description Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts. */
            timeout_ms?: number;
            /** @description Most bytes of each stream in the answer; 1 MiB if absent. */
            max_output_bytes?: number;
            /** @description Drive directory for the full streams, in the files stdout and stderr. */
            output_to?: string;
            /** @description The caller's own name for this run. The same name never runs twice. */
            exec_id?: string;
            /** @description Whether standard input takes more later; true if absent, unless stdin or stdin_b64 is all there is. */
            stdin_open?: boolean;
        };
        ExecutionStdinRequest: {
            data_b64?: string;
            /** @description Whether standard input ends after these bytes. */
            eof?: boolean;
            /** @description Position of the first of these bytes in the standard input; stdin_bytes is the number that has arrived. */
            offset?: number;
        };
        ExitEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "exit";
            exit_code: number | null;
            signal: string | null;
            timed_out: boolean;
            /** @description Present and true if the kernel ended a process of the command because the sandbox ran out of memory. */
            oom?: boolean;
            stdout_bytes: number;
            stderr_bytes: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finished_at: string;
            duration_ms: number;
        };
        ExposedPort: {
            /**
             * @description The port on which the server in the sandbox listens.
             * @example 8000
             */
            port: number;
            /** @enum {string} */
            visibility: "private" | "public";
            /** @description https://{label}.{ports.domain} if the operator has set a domain, else path_url. */
            url: string;
            /** @description Always works; its pages are restricted in browsers. */
            path_url: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            traffic: components["schemas"]["PortTraffic"];
            /** @description Opens this port and nothing else: header X-Port-Token, or port_token in the query once, which makes it a cookie. null for a public port. */
            token: string | null;
            /** @description Whether a server listens on the port in the guest right now. */
            listening: boolean;
        };
        ExposedPortPage: {
            items: components["schemas"]["ExposedPort"][];
            next_cursor: string | null;
        };
        FieldError: {
            field: string;
            code: string;
            message: string;
            min?: number;
            max?: number;
        };
        FileChangeEvent: components["schemas"]["FileWatchingEvent"] | components["schemas"]["FileChanged"] | components["schemas"]["ErrorEvent"];
        FileChanged: {
            /** @description The change's place in the stream, for `after`. */
            cursor: string;
            /** @enum {string} */
            type: "created" | "modified" | "deleted" | "moved" | "overflow";
            path: string;
            /** @description The path's bytes, if they are not UTF-8. */
            path_b64?: string;
            /** @description The former path of a moved entry. */
            from?: string;
            is_directory: boolean;
        };
        FileWatchingEvent: {
            /** @description The change's place in the stream, for `after`. */
            cursor: string;
            /** @enum {string} */
            type: "watching";
            path: string;
        };
        Fork: {
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            sandbox: components["schemas"]["Sandbox"] | null;
            problem: components["schemas"]["ForkProblem"] | null;
        };
        ForkProblem: {
            code: string;
            title: string;
            detail: string;
            details?: {
                [key: string]: unknown;
            };
        };
        FsDeleteResult: {
            path: string;
            guest_path: string;
            /** @enum {string} */
            state: "deleted";
        };
        FsListResult: {
            path: string;
            items: components["schemas"]["DriveEntry"][];
            next_cursor: string | null;
        };
        FsMkdirRequest: {
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
            /**
             * @description Permissions in octal; 0644 if absent.
             * @example 0644
             */
            mode?: string;
            /**
             * @description uid:gid, or root; a drive knows no other user names. Of directories above it that are made too.
             * @example 1000:1000
             */
            owner?: string;
        };
        FsMkdirResult: {
            guest_path: string;
            path: string;
            /** @description The path's bytes, if they are not UTF-8. */
            path_b64?: string;
            name: string;
            /** @enum {string} */
            type: "file" | "directory" | "symlink" | "other";
            size_bytes: number;
            mode: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            /** @description Target of a symbolic link. */
            target?: string;
            created: boolean;
        };
        FsMoveRequest: {
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            from: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            to: string;
            /** @description false if absent: refuse when the target exists. */
            overwrite?: boolean;
        };
        FsReadResult: {
            path: string;
            guest_path: string;
            size_bytes: number;
            offset: number;
            length: number;
            eof: boolean;
            /** @description Null when the bytes are not UTF-8. */
            content: string | null;
            content_b64: string;
            /** @description Of the bytes in this answer. */
            sha256: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
        };
        FsWriteRequest: {
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
            /** @description Text of the file. */
            content?: string;
            /** @description Bytes of the file. */
            content_b64?: string;
            /** @description Add to the end of the file instead of replacing it. Readers may see a part of the addition, and a crash before the answer may leave one. */
            append?: boolean;
            /**
             * @description Permissions in octal; 0644 if absent.
             * @example 0644
             */
            mode?: string;
            /**
             * @description uid:gid, or root; a drive knows no other user names. Of directories above it that are made too.
             * @example 1000:1000
             */
            owner?: string;
            /** @description false: refuse when the file exists; true if absent. */
            overwrite?: boolean;
            /** @description Only if the file has this sha256; else 412. */
            if_match?: string;
        };
        FsWriteResult: {
            path: string;
            guest_path: string;
            size_bytes: number;
            /** @description Of the whole file; null when it was added to and is longer than 64 MiB. */
            sha256: string | null;
            mode: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            created: boolean;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        Grant: {
            /** @description The key_id that the application's calls are recorded under. */
            grant_id: string;
            client_id: string;
            /** @description As the application calls itself. */
            client_name: string;
            /** @description Host of the redirect; null for an application with a code. */
            redirect_host: string | null;
            org_id: string;
            scopes: string[];
            room_ids: string[] | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        GrantCreateRequest: {
            /** @description The query of /authorize, as the application made it. */
            request: string;
            /** @description Granted subset of the requested scopes; all if absent, as far as the role allows. */
            scopes?: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read")[];
            /** @description The rooms that it is bound to; all if absent. */
            room_ids?: string[];
            /** @description Lifetime of the grant; if absent, until it is ended. */
            expires_in_seconds?: number;
        };
        GrantCreateResult: {
            grant_id: string;
            location: string;
        };
        GrantEndResult: {
            grant_id: string;
        };
        GrantListResult: {
            items: components["schemas"]["Grant"][];
        };
        HealthCheck: {
            id: string;
            /** @enum {string} */
            status: "ok" | "warn" | "fail";
            /** @description With a key only. */
            message?: string;
            /** @description With a key only. */
            remedy?: string | null;
        };
        HealthResult: {
            /** @enum {string} */
            status: "ok" | "degraded" | "unavailable";
            /** @enum {string} */
            topology: "nested" | "bare_metal" | "emulated";
            ready: boolean;
            version: string;
            api_versions: string[];
            /** @enum {string} */
            acceleration: "kvm" | "tcg";
            uptime_seconds: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            time: string;
            checks: components["schemas"]["HealthCheck"][];
            capacity?: {
                memory_mib_free: number;
                guest_cids_free: number;
            };
        };
        Host: {
            /** @description Its name, as X-Roomd-Host of its answers. */
            host: string;
            /** @description Whether it is the host that answers. */
            is_self: boolean;
            /**
             * @description degraded: its last sandboxes did not start, no rooms are placed on it; draining: no rooms are placed on it; unreachable: no sign of life for 20 seconds; gone: it was removed.
             * @enum {string}
             */
            state: "active" | "degraded" | "draining" | "unreachable" | "gone";
            /**
             * Format: date-time
             * @description Start of this state; null if it was in it before the answering host began to observe it.
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string | null;
            /** @description URL of this host itself; every other host routes to it too. */
            url: string;
            labels: {
                [key: string]: string;
            };
            version: string | null;
            capacity: components["schemas"]["HostCapacity"] | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            joined_at: string | null;
        };
        HostCapacity: {
            memory_mib: {
                promised: number;
                total: number;
            };
            disk: components["schemas"]["HostDisk"] | null;
            cpus: number;
            rooms: number;
            sandboxes: number;
            /** @description Those of the host, by their ids. */
            templates: string[];
        };
        HostChain: {
            host: string;
            ok: boolean;
            /** @description The first record that is still kept; 0 if there is none. */
            from_seq: number;
            to_seq: number;
            /** @description The first record that breaks the chain. */
            broken_at: number | null;
        };
        HostDisk: {
            size_bytes: number;
            /** @description Free in data_dir. */
            free_bytes: number;
        };
        HostEvacuateRequest: {
            /** @description Rooms to leave on the host, by room_uid: rooms that could not be moved. */
            skip?: string[];
            /** @description Move rooms also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended. */
            force?: boolean;
        };
        HostEvacuated: {
            room: components["schemas"]["EvacuatedRoom"] | null;
            /** @description Rooms that remain on it, without those in skip. */
            left: number;
        };
        HostListResult: {
            items: components["schemas"]["Host"][];
            /** @description Time since the answering host last read the shared database; 0 for a standalone host. After 20 seconds it is unknown whether the others run. */
            directory_age_seconds: number;
        };
        HostLoop: {
            /** @description Of the service's event loop. */
            busy_seconds: number;
            /** @description The owners with the highest usage. */
            owners: {
                /** @description org:ID, net for clients without a key, host for the service itself. */
                owner: string;
                busy_seconds: number;
            }[];
            /** @description Pieces of work that wait for it. */
            waiting: number;
            longest: components["schemas"]["LoopPiece"] | null;
        };
        HostMemory: {
            size_bytes: number;
            available_bytes: number;
            /** @description To sandboxes. */
            promised_bytes: number;
            /** @description In use by sandboxes. */
            resident_bytes: number;
        };
        Identity: {
            identity_id: string;
            /** @description The identity provider. */
            issuer: string;
            /** @description Its name at the provider when it was linked. */
            label: string;
            /** @description False: the service now uses another issuer, or none. */
            is_usable: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        IdentityBeginResult: {
            url: string;
        };
        IdentityListResult: {
            items: components["schemas"]["Identity"][];
        };
        IdentityRemoveResult: {
            identity_id: string;
            removed: boolean;
        };
        Invitation: {
            invitation_id: string;
            /** @description The address it is for; null: anyone with the link. */
            email: string | null;
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
        };
        InvitationCreateRequest: {
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
            /** @description Only this address can accept it; its ownership is not verified. */
            email?: string;
        };
        InvitationCreateResult: {
            invitation_id: string;
            /** @description The address it is for; null: anyone with the link. */
            email: string | null;
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            /** @description The link to hand over. */
            url: string;
            /** @description Whether an e-mail with the link is on its way. */
            is_mailed: boolean;
        };
        InvitationDeleteResult: {
            invitation_id: string;
        };
        InvitationListResult: {
            items: components["schemas"]["Invitation"][];
        };
        KeyCreateRequest: {
            name: string;
            scopes?: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read" | "keys:write" | "org:admin")[];
            /** @description The key cannot tell whether any other room exists. */
            room_ids?: string[];
            /** @description The key acts only as this agent, and only on its sandboxes. */
            agent_id?: string;
            expires_in_seconds?: number;
        };
        KeyRotateRequest: {
            /** @description 3600 if absent. */
            grace_seconds?: number;
        };
        KeyRotateResult: {
            key_id: string;
            name: string;
            /** @description The beginning of the key, to tell keys apart. */
            key_prefix: string;
            /** @enum {string} */
            state: "active" | "expired" | "revoked";
            scopes: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read" | "keys:write" | "org:admin")[];
            /** @description The only rooms that the key can see; null: all. */
            room_ids: string[] | null;
            /** @description The only agent that the key acts as; null: any. */
            agent_id: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            created_by: {
                type: string;
                id: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /** @description The key that it was rotated into. */
            replaced_by: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /** @description The key itself, shown only once. */
            key: string;
            replaces: components["schemas"]["ApiKey"];
        };
        LedgerEntry: {
            entry_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /**
             * @description spend: by the price table, one entry a day in UTC.
             * @enum {string}
             */
            kind: "grant" | "withdrawal" | "spend";
            /** @description Credits; negative if spent or withdrawn. */
            amount: number;
            reason: string;
        };
        LeftOut: {
            sandboxes: number;
            snapshots: number;
            /** @description Checkpoints that come without their sandboxes. */
            checkpoints: number;
            recordings: number;
        };
        LocateResult: {
            /** @description Its public name: of a room its room_id, of an agent its agent_id. */
            id: string;
            /** @enum {string} */
            type: "room" | "sandbox" | "agent" | "execution" | "message" | "barrier" | "terminal" | "recording" | "snapshot" | "checkpoint" | "port" | "audit" | "request" | "key" | "org" | "template" | "template_build" | "account" | "member" | "invitation" | "session" | "passkey" | "identity" | "application" | "credit" | "ssh_key" | "ssh_access" | "webhook";
            /** @description Path of its page, relative to the URL of the web pages. */
            path: string;
            room_id: string | null;
            agent_id: string | null;
        };
        LoopPiece: {
            /** @description Operation or kind of work. */
            label: string;
            owner: string;
            ms: number;
        };
        MadeSandboxDirectory: {
            path: string;
            /** @description The path's bytes, if they are not UTF-8. */
            path_b64?: string;
            name: string;
            /** @enum {string} */
            type: "file" | "directory" | "symlink" | "other";
            size_bytes: number;
            mode: string;
            uid: number;
            gid: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            /** @description Target of a symbolic link. */
            target?: string;
            created: boolean;
        };
        MeGetResult: {
            org_id: string;
            plan: string;
            key_id: string;
            name: string;
            scopes: string[];
            room_ids: string[] | null;
            agent_id: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
        };
        Member: {
            user_id: string;
            email: string;
            name: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            disabled_at: string | null;
        };
        MemberListResult: {
            items: components["schemas"]["Member"][];
        };
        MemberRemoveResult: {
            user_id: string;
            /** @description Those of applications are among them. */
            keys_revoked: number;
            sessions_ended: number;
            ended: components["schemas"]["EndedMade"];
        };
        MemberUpdateRequest: {
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
        };
        Membership: {
            org_id: string;
            name: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member" | "viewer";
            /**
             * Format: date-time
             * @description Time at which its end was requested; null: active.
             */
            ending_at: string | null;
        };
        Message: {
            /** @description The message's name, unique in the room. */
            message_id: string;
            /** @description Place in the room's order. */
            seq: number;
            source: string;
            destination: string | null;
            destinations: string[] | null;
            topic: string | null;
            /** @enum {string} */
            kind: "event" | "request" | "response";
            payload: unknown;
            payload_b64: string | null;
            size_bytes: number;
            headers: {
                [key: string]: string;
            };
            reply_to: string | null;
            ack_required: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /** @description In an inbox: how often it has been delivered, this time included. */
            attempt: number | null;
        };
        MessageAckRequest: {
            /**
             * @description The recipient that has it.
             * @example worker-1
             */
            agent_id?: string;
        };
        MessageAckResult: {
            /** @description The message's name, unique in the room. */
            message_id: string;
            seq: number;
            agent_id: string;
            /** @enum {string} */
            state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
        };
        MessageGetResult: {
            /** @description The message's name, unique in the room. */
            message_id: string;
            /** @description Place in the room's order. */
            seq: number;
            source: string;
            destination: string | null;
            destinations: string[] | null;
            topic: string | null;
            /** @enum {string} */
            kind: "event" | "request" | "response";
            payload: unknown;
            payload_b64: string | null;
            size_bytes: number;
            headers: {
                [key: string]: string;
            };
            reply_to: string | null;
            ack_required: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /** @description In an inbox: how often it has been delivered, this time included. */
            attempt: number | null;
            /** @enum {string} */
            state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            deliveries: {
                agent_id: string;
                /** @enum {string} */
                state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            }[];
            recipient_count: number;
        };
        MessageReceipt: {
            /** @description The message's name, unique in the room. */
            message_id: string;
            seq: number;
            /**
             * @description The state at the recipient that is furthest behind.
             * @enum {string}
             */
            state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            deliveries: {
                agent_id: string;
                /** @enum {string} */
                state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            }[];
            recipient_count: number;
        };
        MessageReplyRequest: {
            /**
             * @description The sender; in a guest always the sandbox's own agent.
             * @example worker-1
             */
            source?: string;
            /** @description The message_id of the reply. */
            reply_message_id?: string;
            /** @description Any JSON, up to 64 KiB as text. */
            payload?: unknown;
            /** @description Bytes, up to 64 KiB. */
            payload_b64?: string;
            /** @description Metadata of the message, up to 4 KiB. */
            headers?: {
                [key: string]: string;
            };
            /** @description Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable. */
            ack_required?: boolean;
            /** @description The message expires unread after this time; never if absent. */
            ttl_ms?: number;
        };
        MessageReplyResult: {
            /** @description The message's name, unique in the room. */
            message_id: string;
            seq: number;
            /**
             * @description The state at the recipient that is furthest behind.
             * @enum {string}
             */
            state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            deliveries: {
                agent_id: string;
                /** @enum {string} */
                state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            }[];
            recipient_count: number;
        };
        MessageSendManyRequest: {
            /** @description In the order of delivery. */
            messages: components["schemas"]["MessageToSend"][];
        };
        MessageSendManyResult: {
            /** @description In the same order. */
            messages: components["schemas"]["MessageReceipt"][];
        };
        MessageToSend: {
            /**
             * @description The sender; in a guest always the sandbox's own agent.
             * @example worker-1
             */
            source?: string;
            /** @description The recipient; * for all others. Matches * or ^(?!sbx_)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$. */
            destination?: string | null;
            /** @description Several recipients. */
            destinations?: string[] | null;
            /** @description Words separated by dots. The message goes to the topic's subscribers. Matches ^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$. */
            topic?: string | null;
            /**
             * @description event if absent; with reply_to response.
             * @enum {string}
             */
            kind?: "event" | "request" | "response";
            /** @description message_id of the message that this replies to. */
            reply_to?: string;
            /** @description The message's name, unique in the room. */
            message_id?: string;
            /** @description Any JSON, up to 64 KiB as text. */
            payload?: unknown;
            /** @description Bytes, up to 64 KiB. */
            payload_b64?: string;
            /** @description Metadata of the message, up to 4 KiB. */
            headers?: {
                [key: string]: string;
            };
            /** @description Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable. */
            ack_required?: boolean;
            /** @description The message expires unread after this time; never if absent. */
            ttl_ms?: number;
        };
        NetworkPlace: {
            /** @description The requested name; null for an address. */
            host: string | null;
            /** @description The last address; null when it was refused before it was resolved. */
            ip: string | null;
            /** @description null if only the name was looked up. */
            port: number | null;
            allowed: boolean;
            /**
             * @description Reason of the refusal.
             * @enum {string|null}
             */
            reason: "not_listed" | "blocked_address" | "sni_mismatch" | "sni_missing" | "host_mismatch" | "bad_request" | "other" | null;
            /** @description Number of connections and attempts. */
            connections: number;
            sent_bytes: number;
            received_bytes: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            first_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_at: string;
        };
        NewApiKey: {
            key_id: string;
            name: string;
            /** @description The beginning of the key, to tell keys apart. */
            key_prefix: string;
            /** @enum {string} */
            state: "active" | "expired" | "revoked";
            scopes: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read" | "keys:write" | "org:admin")[];
            /** @description The only rooms that the key can see; null: all. */
            room_ids: string[] | null;
            /** @description The only agent that the key acts as; null: any. */
            agent_id: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            created_by: {
                type: string;
                id: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /** @description The key that it was rotated into. */
            replaced_by: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /** @description The key itself, shown only once. */
            key: string;
        };
        NewWebhook: {
            /** @example whk_01KG9YXD6P9R2T4W7Y0A3C5E8H */
            webhook_id: string;
            /**
             * @description Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges).
             * @example https://example.org/hooks/roomd
             */
            url: string;
            /** @description Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent. */
            types: string[];
            /** @description Only events of rooms with these names, including rooms made later; null: of all, and events of no room. */
            room_ids: string[] | null;
            /** @description Whether events are sent. Events that occur while it is disabled are sent once it is enabled again. */
            enabled: boolean;
            /**
             * @description Why it is disabled: by request; its receiver answered 410; its receiver accepted nothing for 5 days; its maker's access ended (a person or a key). The caller that enables it becomes its maker.
             * @enum {string|null}
             */
            disabled_reason: "by_request" | "gone" | "failing" | "maker_ended" | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            disabled_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            created_by: {
                type: string;
                id: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Until then the previous secret signs too.
             * @example 2026-01-31T12:00:00.000Z
             */
            former_secret_until: string | null;
            /** @description Events that the receiver has accepted. */
            sent_count: number;
            /** @description Events that it did not accept and that will be retried. */
            waiting_count: number;
            /** @description Audit records that are not processed yet. */
            behind_count: number;
            /** @description Audit records that retention deleted before they were processed or sent. Whether the unprocessed records would have been sent is unknown. */
            missed_count: number;
            /** @description Events abandoned after 17 attempts, each time it happened. The receiver accepted others in that time: a webhook whose receiver accepts none is disabled first, and no event is abandoned. */
            failed_count: number;
            /**
             * Format: date-time
             * @description When the receiver last accepted an event.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_sent_at: string | null;
            /**
             * Format: date-time
             * @description Since when it has accepted none.
             * @example 2026-01-31T12:00:00.000Z
             */
            failing_since: string | null;
            /**
             * @description Signs the events; shown only once.
             * @example whsec_…
             */
            secret: string;
        };
        OrgAuditVerdict: {
            ok: boolean;
            /** @description The first record that is still kept; 0 if there is none. */
            from_seq: number;
            to_seq: number;
            /** @description The first record that breaks the chain. */
            broken_at: number | null;
            /** @description With several hosts: the chain of each host that answered. ok is then true if all of these are intact, and the numbers are those of the first broken chain, or else of the host that was called. */
            hosts?: components["schemas"]["HostChain"][];
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        OrgCreateRequest: {
            name: string;
            /**
             * @description free if absent.
             * @enum {string}
             */
            plan?: "free" | "starter";
        };
        OrgCreateResult: {
            org_id: string;
            name: string;
            /** @enum {string} */
            plan: "free" | "starter";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            key_id: string;
            /** @description The key itself, shown only once. */
            api_key: string;
        };
        OrgDeleteResult: {
            org_id: string;
            /** @enum {string} */
            state: "ending";
            /** @description Rooms that have not ended yet. */
            rooms_left: number;
            keys_revoked: number;
            members_removed: number;
        };
        OrgEvent: {
            audit_id: string;
            /** @description Position in the organization's chain. */
            seq: number;
            event: string;
            /** @enum {string} */
            outcome: "success" | "denied" | "error";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            org_id: string | null;
            room_id: string | null;
            room_uid: string | null;
            agent_id: string | null;
            sandbox_id: string | null;
            actor: {
                type: string;
                id: string;
                name: string;
            };
            /** @enum {string} */
            source: "rest" | "mcp" | "vsock" | "ssh" | "web" | "cli" | "reconciler";
            request_id: string | null;
            ip: string | null;
            status: number | null;
            error_code: string | null;
            duration_ms: number | null;
            details: {
                [key: string]: unknown;
            };
            prev_hash: string;
            hash: string;
            /** @description Position after this event, to continue from; also its id. Opaque. */
            cursor: string;
        };
        OrgSandboxListResult: {
            items: components["schemas"]["Sandbox"][];
            next_cursor: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        OutputEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "stdout" | "stderr";
            data_b64: string;
        };
        Passkey: {
            passkey_id: string;
            name: string;
            /** @description The name of the service for which it was made and is valid. */
            rp_id: string;
            /** @description False: the service has another name now. */
            is_usable: boolean;
            /** @description Whether its provider has a copy elsewhere; else it is on one device. */
            is_synced: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        PasskeyAddRequest: {
            name?: string;
            /** @description Result of `navigator.credentials.create`, as returned by its `toJSON`. */
            response: {
                [key: string]: unknown;
            };
        };
        PasskeyListResult: {
            items: components["schemas"]["Passkey"][];
        };
        PasskeyOptionsResult: {
            options: {
                [key: string]: unknown;
            };
        };
        PasskeyRemoveResult: {
            passkey_id: string;
            removed: boolean;
        };
        /** @description A sign that the stream is alive. */
        PingEvent: {
            /** @enum {string} */
            type: "ping";
            /** @description Parts that are currently missing. */
            warnings?: string[];
        };
        Plan: {
            rooms: {
                soft_cap: number;
                hard_cap: number;
            };
            sandboxes: {
                soft_cap: number;
                hard_cap: number;
            };
            memory_mib: {
                soft_cap: number;
                hard_cap: number;
            };
            disk_gib: {
                soft_cap: number;
                hard_cap: number;
            };
            template_mib: {
                soft_cap: number;
                hard_cap: number;
            };
            drive: {
                soft_cap_bytes: number;
                hard_cap_bytes: number;
            };
            /** @description Null: no limit. */
            credits: number | null;
        };
        PortTraffic: {
            /** @description Connections to the server: a call by HTTP is one. */
            connections: number;
            /** @description Connections that are open. */
            open_connections: number;
            /** @description Bytes sent by the server. */
            sent_bytes: number;
            /** @description Bytes sent to the server. */
            received_bytes: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string;
        };
        /** @description RFC 9457 problem details. */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @enum {string} */
            code: "invalid_json" | "invalid_body" | "invalid_query" | "invalid_cursor" | "missing_credentials" | "invalid_api_key" | "api_key_expired" | "session_ended" | "sign_in_failed" | "insufficient_scope" | "scope_escalation" | "hub_is_read_only" | "sign_up_closed" | "proof_required" | "foreign_request" | "source_mismatch" | "path_escapes_drive" | "room_not_found" | "sandbox_not_found" | "execution_not_found" | "path_not_found" | "port_not_exposed" | "agent_not_found" | "message_not_found" | "barrier_not_found" | "snapshot_not_found" | "checkpoint_not_found" | "recording_not_found" | "template_build_not_found" | "org_not_found" | "key_not_found" | "webhook_not_found" | "delivery_not_found" | "member_not_found" | "invitation_not_found" | "session_not_found" | "grant_not_found" | "device_not_found" | "passkey_not_found" | "identity_not_found" | "checkout_not_found" | "link_not_found" | "id_not_found" | "route_not_found" | "method_not_allowed" | "body_too_large" | "payload_too_large" | "file_too_large" | "unsupported_media_type" | "room_id_in_use" | "agent_id_in_use" | "guest_cid_in_use" | "last_owner" | "last_way_in" | "invalid_state" | "room_destroying" | "snapshot_incompatible" | "snapshot_in_use" | "exec_id_in_use" | "billing_off" | "mail_off" | "already_exists" | "is_directory" | "not_empty" | "agent_unavailable" | "deadlock_detected" | "barrier_timeout" | "barrier_broken" | "barrier_cancelled" | "barrier_parties_mismatch" | "idempotency_in_progress" | "history_gone" | "precondition_failed" | "validation_failed" | "unknown_field" | "conflicting_fields" | "guest_cid_out_of_range" | "memory_mib_out_of_range" | "memory_below_template_minimum" | "template_not_found" | "invalid_env_json" | "reserved_env_key" | "invalid_egress_entry" | "invalid_command" | "cwd_not_found" | "timeout_out_of_range" | "port_out_of_range" | "invalid_path" | "build_failed" | "misdirected" | "image_not_found" | "image_unauthorized" | "image_too_large" | "image_invalid" | "idempotency_key_reused" | "rate_limited" | "registry_rate_limited" | "quota_exceeded" | "inbox_full" | "too_many_executions" | "too_many_ports" | "caller_left" | "range_not_satisfiable" | "internal" | "billing_failed" | "upstream_failed" | "guest_unreachable" | "port_not_listening" | "not_ready" | "insufficient_capacity" | "cluster_unavailable" | "not_a_member" | "host_unreachable" | "room_moving" | "shutting_down" | "reply_timeout" | "drive_full" | "disk_full";
            retryable: boolean;
            request_id: string;
            details: {
                [key: string]: unknown;
            };
            errors: components["schemas"]["FieldError"][];
            hint: string | null;
        };
        Recording: {
            /** @example rec_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2 */
            recording_id: string;
            room_id: string;
            agent_id: string;
            sandbox_id: string;
            /** @enum {string} */
            state: "recording" | "ended";
            /**
             * @description Reason of its end; null while in progress.
             * @enum {string|null}
             */
            end_reason: "stopped" | "time_up" | "too_large" | "disk_full" | "sandbox_stopped" | "screen_lost" | "service_restarted" | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
            /** @description So far, while in progress. */
            duration_ms: number;
            size_bytes: number;
            /** @description Of the widest picture in it. */
            width: number;
            height: number;
        };
        RecordingDeleteResult: {
            recording_id: string;
            /** @enum {string} */
            state: "deleted";
        };
        RecordingListResult: {
            items: components["schemas"]["Recording"][];
        };
        RecordingStartRequest: {
            /** @description Time limit; 3600 if absent. */
            max_seconds?: number;
        };
        RevokedApiKey: {
            key_id: string;
            name: string;
            /** @description The beginning of the key, to tell keys apart. */
            key_prefix: string;
            /** @enum {string} */
            state: "active" | "expired" | "revoked";
            scopes: ("rooms:read" | "rooms:write" | "sandboxes:read" | "sandboxes:write" | "exec" | "ports:write" | "drive:read" | "drive:write" | "fabric:read" | "fabric:write" | "terminal" | "templates:write" | "audit:read" | "usage:read" | "keys:write" | "org:admin")[];
            /** @description The only rooms that the key can see; null: all. */
            room_ids: string[] | null;
            /** @description The only agent that the key acts as; null: any. */
            agent_id: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            created_by: {
                type: string;
                id: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /** @description The key that it was rotated into. */
            replaced_by: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            ended: components["schemas"]["EndedMade"];
        };
        Room: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            room_uid: string;
            org_id: string;
            /** @description Name of the host that it is on, as X-Roomd-Host of its answers. */
            host: string;
            /** @enum {string} */
            state: "active" | "destroying" | "destroyed";
            status: {
                /** @description One word for programs. */
                reason: string;
                /** @description One sentence for a person. */
                message: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                last_transition_at: string;
            };
            /** @description Up to 64 labels of the caller's own. */
            labels: {
                [key: string]: string;
            };
            sandbox_count: number;
            drive: {
                used_bytes: number;
                limit_bytes: number;
                /** @description Number of files. If the kernel enforces the quota (defaults.drive_quota): entries of any kind. */
                file_count: number;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            created_by: {
                type: string;
                id: string;
            };
            /** @description Sentences for a person. */
            warnings: string[];
        };
        RoomCheckpointRequest: {
            /** @description For people. */
            name?: string;
            /** @description Lifetime, after which it is deleted; 604800 (7 days) if absent. */
            expires_in_seconds?: number;
        };
        RoomCreateRequest: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Up to 64 labels of the caller's own. */
            labels?: {
                [key: string]: string;
            };
            /** @description The room is destroyed after this time. */
            ttl_seconds?: number;
            /** @description Target host, if there are several; else a host with free memory. */
            host?: string;
            /** @description Only a host that has all of these labels. */
            host_labels?: {
                [key: string]: string;
            };
        };
        RoomDestroyResult: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            room_uid: string;
            /** @enum {string} */
            state: "destroying" | "destroyed";
            sandboxes_destroyed: string[];
            drive: {
                /** @enum {string} */
                state: "retained" | "deleted";
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                until_at: string | null;
            };
            duration_ms: number;
        };
        RoomForkRequest: {
            /**
             * @description Name of the new room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Checkpoint of the source; one is taken now if absent. */
            checkpoint_id?: string;
            /**
             * @description Source of guest_cids: free ones are assigned, also if absent.
             * @enum {string}
             */
            cids?: "suggest";
        };
        RoomForkResult: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            room: components["schemas"]["Room"];
            checkpoint_id: string;
            /** @description One per sandbox of the checkpoint: the sandbox, or the problem that prevented it. */
            items: components["schemas"]["Fork"][];
        };
        RoomFromBackup: {
            room: components["schemas"]["Room"];
            /** @description Name of the room that was backed up. */
            of_room: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            backed_up_at: string;
            left_out: components["schemas"]["LeftOut"];
        };
        RoomGlance: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            room_uid: string;
            /** @description Name of the host that it is on, as X-Roomd-Host of its answers. */
            host: string;
            /** @enum {string} */
            state: "active" | "destroying" | "destroyed";
            /** @description Up to 64 labels of the caller's own. */
            labels: {
                [key: string]: string;
            };
            /** @description Agents that are not gone, with or without a sandbox. */
            agents: number;
            /** @description Running sandboxes. */
            running: number;
            /** @description Agents that wait for a reply or at a barrier now, as listed by room_waits. */
            blocked: number;
            /** @description Whether some of them wait for each other, so that none can continue alone. */
            in_circle: boolean;
            /** @description Whether there are more waits than were examined: then more can be blocked. */
            truncated: boolean;
            /** @description Messages that were accepted in the last 60 s, on this host. */
            messages_last_minute: number;
            drive: {
                /** @description 0 if the drive cannot be read now. */
                used_bytes: number;
                limit_bytes: number;
            };
            /** @description Since the room was made, in its last 366 days. On a day with very many rooms and agents, not all cost is attributed to rooms. Null for a key without usage:read, and for a key that is bound to an agent. */
            cost: {
                /** @description Time in which its sandboxes were running. */
                sandbox_seconds: number;
                /** @description By the current price table; 0 if nothing has a price. */
                credits: number;
            } | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        RoomListResult: {
            items: components["schemas"]["Room"][];
            next_cursor: string | null;
            org_id: string;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        RoomMoveRequest: {
            /** @description Name of the target host. */
            host: string;
            /** @description Move it also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended. */
            force?: boolean;
        };
        RoomMoved: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            room_uid: string;
            /** @description Name of the previous host. */
            from: string;
            /** @description Name of the present host. */
            to: string;
            /** @description Counter of the room's hosts: 1 when it was created. */
            epoch: number;
            /** @description Size of its drive's files. */
            drive_bytes: number;
            /** @description The agents whose sandboxes were ended by the move. */
            sandboxes_ended: string[];
            lost: {
                snapshots: number;
                checkpoints: number;
                recordings: number;
            };
            /** @description How long the room was unreachable. */
            away_ms: number;
        };
        RoomNow: {
            /** @enum {string} */
            type: "now";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @description As of room_waits, the oldest first, each for at most 100 agents; without commands. */
            waits: components["schemas"]["Wait"][];
            /** @description Commands that are running, the oldest first. */
            commands: components["schemas"]["RunningCommand"][];
            deadlocks: {
                /** @description Each waits for the next, the last for the first. */
                agents: string[];
                /** @description The same as a sentence. */
                text: string;
            }[];
            /** @description Whether there are more waits. */
            truncated: boolean;
        };
        RoomNowLine: components["schemas"]["RoomNow"] | components["schemas"]["CommandLine"] | components["schemas"]["DeadlockLine"];
        RoomOverviewResult: {
            items: components["schemas"]["RoomGlance"][];
            next_cursor: string | null;
            org_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        RoomRestoreResult: {
            room: components["schemas"]["Room"];
            /** @description One per sandbox of the checkpoint: the sandbox, or the problem that prevented it. */
            items: components["schemas"]["Fork"][];
        };
        RoomTimelineResult: {
            room_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            items: components["schemas"]["TimelineItem"][];
            /** @description On the first page: running commands, waits of agents, also between their calls, and sandboxes in standby. */
            open: components["schemas"]["TimelineItem"][];
            next_cursor: string | null;
            /** @description URL of the page that shows a trace, with {trace_id} for its id, if the service has one. */
            trace_url: string | null;
        };
        RoomUpdateRequest: {
            /** @description Up to 64 labels of the caller's own. */
            labels?: {
                [key: string]: string;
            };
            /** @description Destroys the room this long after now; null: never. */
            expires_in_seconds?: number | null;
        };
        RoomWaitsResult: {
            room_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @description The oldest first. */
            waits: components["schemas"]["Wait"][];
            /** @description One of the shortest rings of each deadlocked group. */
            cycles: {
                /** @description Each waits for the next, the last for the first. */
                agents: string[];
                /** @description The same as a sentence. */
                text: string;
            }[];
            /** @description Whether there are more waits than are listed. */
            truncated: boolean;
            /** @description The same as one paragraph of text. */
            text: string;
        };
        RunningCommand: {
            agent_id: string;
            exec_id: string;
            /** @description One line; credentials are redacted. */
            command: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string;
        };
        Sandbox: {
            sandbox_id: string;
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            guest_cid: number;
            template_id: string;
            template_digest: string | null;
            /** @description The snapshot from which it was created, to which it was rolled back, or which was taken of it last. */
            snapshot_id: string | null;
            vcpu_count: number;
            memory_mib: number;
            /** @enum {string} */
            state: "creating" | "starting" | "running" | "pausing" | "paused" | "hibernating" | "hibernated" | "resuming" | "failed" | "destroying" | "destroyed";
            status: {
                /** @description One word for programs. */
                reason: string;
                /** @description One sentence for a person. */
                message: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                last_transition_at: string;
            };
            exit: {
                /** @enum {string} */
                cause: "user_requested" | "expired" | "idle" | "oom" | "guest_panic" | "vmm_crash" | "host_restart" | "credits_exhausted" | "host_evacuated";
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                at: string;
            } | null;
            env_keys: string[];
            egress: {
                /** @enum {string} */
                mode: "none" | "allowlist" | "public";
                allowlist: string[];
                revision: number;
            };
            fabric_attached: boolean;
            drive_mount: string;
            drive: {
                /**
                 * @description degraded: commands that use the drive wait or fail until it is back; others run.
                 * @enum {string}
                 */
                state: "ok" | "degraded";
                message: string | null;
            };
            ports: components["schemas"]["ShownPort"][];
            /** @description Up to 64 labels of the caller's own. */
            labels: {
                [key: string]: string;
            };
            lifecycle: {
                idle_after_seconds: number | null;
                /**
                 * @description Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later.
                 * @enum {string}
                 */
                on_idle: "destroy" | "standby" | "hibernate";
                /** @description Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing. */
                wake_on: ("api" | "terminal" | "message" | "port")[];
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            ready_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            stopped_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            create_wall_ms: number | null;
            /** @description Time per stage of create, in fields ending _ms. */
            boot: {
                [key: string]: number;
            };
            /** @enum {string|null} */
            start_mode: "pool" | "snapshot" | "cold" | null;
            created_by: {
                type: string;
                id: string;
            };
        };
        SandboxCreateRequest: {
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            /**
             * @description Address of the guest, unique on the host. Default: a free one.
             * @example 9100
             */
            guest_cid?: number;
            /**
             * @description Memory in MiB; /v1/config has the host's limit. Default: the template's default_memory_mib, or the snapshot's.
             * @example 512
             */
            memory_mib?: number;
            /** @description 1 if absent, at most the host's cores. */
            vcpu_count?: number;
            /** @description Which template; "default" if absent. */
            template_id?: string;
            /** @description Snapshot of the room, in place of a template. memory_mib and vcpu_count are then those of the snapshot; env is added to that of its sandbox, and absent fields are as they were in it. */
            snapshot_id?: string;
            /** @description Environment variables; ROOMD_ names are reserved. */
            env?: {
                [key: string]: string;
            };
            /** @description The same as a JSON string. Not together with env. */
            env_json?: string;
            /** @description Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address. */
            egress_allowlist?: string[];
            /** @description The same as a JSON string. */
            egress_allowlist_json?: string;
            /** @description Up to 64 labels of the caller's own. */
            labels?: {
                [key: string]: string;
            };
            /** @description A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock. */
            idle_timeout_seconds?: number;
            /** @description Ends the sandbox this long after its creation, whatever it does, also in standby. */
            max_duration_seconds?: number;
            /** @description When it is idle, the action then, and the triggers that wake it. */
            lifecycle?: {
                /** @description A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock. */
                idle_after_seconds?: number | null;
                /**
                 * @description Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later.
                 * @enum {string}
                 */
                on_idle?: "destroy" | "standby" | "hibernate";
                /** @description Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing. */
                wake_on?: ("api" | "terminal" | "message" | "port")[];
            };
            /** @description Whether the guest reaches its room; true if absent. */
            attach_fabric?: boolean;
            /** @description false: no egress at all; true if absent. */
            enable_guest_net?: boolean;
        };
        SandboxCreateResult: {
            sandbox_id: string;
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            guest_cid: number;
            template_id: string;
            template_digest: string | null;
            /** @description The snapshot from which it was created, to which it was rolled back, or which was taken of it last. */
            snapshot_id: string | null;
            vcpu_count: number;
            memory_mib: number;
            /** @enum {string} */
            state: "creating" | "starting" | "running" | "pausing" | "paused" | "hibernating" | "hibernated" | "resuming" | "failed" | "destroying" | "destroyed";
            status: {
                /** @description One word for programs. */
                reason: string;
                /** @description One sentence for a person. */
                message: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                last_transition_at: string;
            };
            exit: {
                /** @enum {string} */
                cause: "user_requested" | "expired" | "idle" | "oom" | "guest_panic" | "vmm_crash" | "host_restart" | "credits_exhausted" | "host_evacuated";
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                at: string;
            } | null;
            env_keys: string[];
            egress: {
                /** @enum {string} */
                mode: "none" | "allowlist" | "public";
                allowlist: string[];
                revision: number;
            };
            fabric_attached: boolean;
            drive_mount: string;
            drive: {
                /**
                 * @description degraded: commands that use the drive wait or fail until it is back; others run.
                 * @enum {string}
                 */
                state: "ok" | "degraded";
                message: string | null;
            };
            ports: components["schemas"]["ShownPort"][];
            /** @description Up to 64 labels of the caller's own. */
            labels: {
                [key: string]: string;
            };
            lifecycle: {
                idle_after_seconds: number | null;
                /**
                 * @description Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later.
                 * @enum {string}
                 */
                on_idle: "destroy" | "standby" | "hibernate";
                /** @description Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing. */
                wake_on: ("api" | "terminal" | "message" | "port")[];
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            ready_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            stopped_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            create_wall_ms: number | null;
            /** @description Time per stage of create, in fields ending _ms. */
            boot: {
                [key: string]: number;
            };
            /** @enum {string|null} */
            start_mode: "pool" | "snapshot" | "cold" | null;
            created_by: {
                type: string;
                id: string;
            };
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        SandboxDestroyResult: {
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            sandbox_id: string;
            guest_cid: number;
            /** @enum {string} */
            state: "destroyed";
        };
        SandboxExecRequest: {
            /** @description The command and its arguments, run without a shell. */
            argv?: string[];
            /** @description The same as a JSON string. */
            argv_json?: string;
            /** @description A line that /bin/sh -c runs. */
            command?: string;
            /** @description Working directory in the guest. */
            cwd?: string;
            /** @description Environment variables; ROOMD_ names are reserved. */
            env?: {
                [key: string]: string;
            };
            /** @description The same as a JSON string. Not together with env. */
            env_json?: string;
            /** @description User name or id; root if absent. */
            user?: string;
            /** @description Text for standard input. */
            stdin?: string;
            /** @description Bytes for standard input. */
            stdin_b64?: string;
            /** @description Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts. */
            timeout_ms?: number;
            /** @description Most bytes of each stream in the answer; 1 MiB if absent. */
            max_output_bytes?: number;
            /** @description Drive directory for the full streams, in the files stdout and stderr. */
            output_to?: string;
            /** @description The caller's own name for this run. The same name never runs twice. */
            exec_id?: string;
            /** @description Longest wait for the command's end. After it the answer is 202 with state running and the output so far; the command continues under its exec_id. By default the call waits until the end. */
            wait_ms?: number;
        };
        SandboxExposePortRequest: {
            /**
             * @description The port on which the server in the sandbox listens.
             * @example 8000
             */
            port: number;
            /**
             * @description private (the default): only with the port's own token.
             * @enum {string}
             */
            visibility?: "private" | "public";
            /**
             * @description Prefix of the URL's label; unguessable characters follow.
             * @example web
             */
            label?: string;
            /** @description The port is unexposed after this time; if absent, when its sandbox ends. */
            expires_in_seconds?: number;
            /** @description How long to wait until a server listens on the port, if none does; 0 if absent. `listening` has the result. */
            wait_ms?: number;
        };
        SandboxFileDeleteResult: {
            path: string;
            /** @enum {string} */
            state: "deleted";
        };
        SandboxFileEntry: {
            path: string;
            /** @description The path's bytes, if they are not UTF-8. */
            path_b64?: string;
            name: string;
            /** @enum {string} */
            type: "file" | "directory" | "symlink" | "other";
            size_bytes: number;
            mode: string;
            uid: number;
            gid: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            /** @description Target of a symbolic link. */
            target?: string;
        };
        SandboxFileListResult: {
            path: string;
            items: components["schemas"]["SandboxFileEntry"][];
            next_cursor: string | null;
        };
        SandboxFileMkdirRequest: {
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
            /**
             * @description Permissions in octal; 0755 if absent.
             * @example 0644
             */
            mode?: string;
            /**
             * @description User of the sandbox, user:group or uid:gid; the user that commands run as if absent.
             * @example 1000:1000
             */
            owner?: string;
        };
        SandboxFileMoveRequest: {
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            from: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            to: string;
            /** @description false if absent: refuse when the target exists. */
            overwrite?: boolean;
        };
        SandboxForkRequest: {
            /** @description One for each forked sandbox: the agent that it serves. */
            agents: {
                /**
                 * @description The agent that the sandbox serves; unique among the room's live sandboxes.
                 * @example worker-1
                 */
                agent_id: string;
                /**
                 * @description Address of the guest, unique on the host.
                 * @example 9100
                 */
                guest_cid?: number;
                /** @description Environment variables; ROOMD_ names are reserved. */
                env?: {
                    [key: string]: string;
                };
            }[];
            /** @description Lifetime, after which it is deleted; 604800 (7 days) if absent. */
            expires_in_seconds?: number;
        };
        SandboxForkResult: {
            snapshot_id: string;
            /** @description One for each agent, in their order: its sandbox, or the problem that prevented it. */
            items: components["schemas"]["Fork"][];
        };
        SandboxLogsResult: {
            /** @enum {string} */
            source: "console" | "agent";
            items: {
                offset: number;
                /** @description Its first 8 KiB. */
                line: string;
            }[];
            next_after: number;
        };
        SandboxMetricsResult: {
            cpu: {
                vcpu_count: number;
                used_seconds: number;
            };
            memory: {
                memory_mib: number;
                resident_bytes: number;
            };
            disk: {
                used_bytes: number;
            };
            clock_skew_ms: number | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
        };
        SandboxNetwork: {
            sandbox_id: string;
            agent_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string;
            /** @description Newest first; at most 250 allowed and 250 refused. */
            items: components["schemas"]["NetworkPlace"][];
            other: {
                /** @description Connections to destinations that are no longer listed, in favor of later ones. */
                allowed: number;
                refused: number;
            };
        };
        SandboxPage: {
            items: components["schemas"]["Sandbox"][];
            next_cursor: string | null;
        };
        SandboxRollbackRequest: {
            /** @description Snapshot of the room; of the same template, memory and processors as the sandbox. */
            snapshot_id: string;
        };
        SandboxSnapshotRequest: {
            /** @description For people. */
            name?: string;
            /**
             * @description full if absent.
             * @enum {string}
             */
            mode?: "full" | "disk";
            /** @description Lifetime, after which it is deleted; 604800 (7 days) if absent. */
            expires_in_seconds?: number;
        };
        SandboxUnexposePortResult: {
            /**
             * @description The port on which the server in the sandbox listens.
             * @example 8000
             */
            port: number;
            /** @enum {string} */
            state: "unexposed";
        };
        SandboxUpdateRequest: {
            /** @description Up to 64 labels of the caller's own. */
            labels?: {
                [key: string]: string;
            };
            /** @description A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock. */
            idle_timeout_seconds?: number | null;
            /** @description Ends the sandbox this long after its creation, whatever it does, also in standby. */
            max_duration_seconds?: number | null;
            /** @description Ends the sandbox this long after now, in place of max_duration_seconds; null: never. */
            expires_in_seconds?: number | null;
            /** @description When it is idle, the action then, and the triggers that wake it. */
            lifecycle?: {
                /** @description A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock. */
                idle_after_seconds?: number | null;
                /**
                 * @description Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later.
                 * @enum {string}
                 */
                on_idle?: "destroy" | "standby" | "hibernate";
                /** @description Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing. */
                wake_on?: ("api" | "terminal" | "message" | "port")[];
            };
        };
        SavedOutput: {
            /** @description The drive directory. */
            path: string;
            /** @enum {string} */
            state: "saving" | "saved" | "failed";
            stdout: {
                path: string;
                size_bytes: number;
                sha256: string;
            } | null;
            stderr: {
                path: string;
                size_bytes: number;
                sha256: string;
            } | null;
            /** @description Why the output could not be saved. */
            error_code: string | null;
        };
        ScreenTicketRequest: {
            /** @description Whether keys, pointer and clipboard reach the screen; false if absent: view only. */
            drive?: boolean;
        };
        ScreenTicketResult: {
            /** @description URL to connect to, with the ticket in its query. */
            ws_path: string;
            /** @description Opens this screen and nothing else until expires_at, as often as needed. Its connections continue after that, while the key that made it is valid. */
            ticket: string;
            drives: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
        };
        SentMessage: {
            /** @description The message's name, unique in the room. */
            message_id: string;
            seq: number;
            /**
             * @description The state at the recipient that is furthest behind.
             * @enum {string}
             */
            state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            deliveries: {
                agent_id: string;
                /** @enum {string} */
                state: "queued" | "delivered" | "read" | "acked" | "undeliverable" | "expired";
            }[];
            recipient_count: number;
            reply?: components["schemas"]["Message"] | null;
        };
        Session: {
            session_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            seen_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            ip: string | null;
            user_agent: string | null;
            is_this: boolean;
        };
        SessionEndResult: {
            sessions_ended: number;
        };
        SessionListResult: {
            items: components["schemas"]["Session"][];
        };
        ShownPort: {
            /**
             * @description The port on which the server in the sandbox listens.
             * @example 8000
             */
            port: number;
            /** @enum {string} */
            visibility: "private" | "public";
            /** @description https://{label}.{ports.domain} if the operator has set a domain, else path_url. */
            url: string;
            /** @description Always works; its pages are restricted in browsers. */
            path_url: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            traffic: components["schemas"]["PortTraffic"];
        };
        Snapshot: {
            /** @example snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2 */
            snapshot_id: string;
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            /** @description The sandbox of which it was taken. */
            sandbox_id: string;
            name: string | null;
            /** @description The snapshot from which its sandbox came, or the last one taken of it before. */
            parent: string | null;
            /**
             * @description full: memory, processes and disk. disk: its own disk alone, from which sandboxes boot.
             * @enum {string}
             */
            mode: "full" | "disk";
            memory_mib: number;
            vcpu_count: number;
            template_id: string;
            /** @description Size on disk in addition to its parent. */
            size_bytes: number;
            /** @description How long its sandbox was paused. */
            paused_ms: number;
            digest: string;
            /** @description The checkpoint that it is part of, and is deleted with. */
            checkpoint_id: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
        };
        SnapshotDeleteResult: {
            snapshot_id: string;
            /** @enum {string} */
            state: "deleted";
        };
        SnapshotPage: {
            items: components["schemas"]["Snapshot"][];
            next_cursor: string | null;
        };
        SshAccess: {
            access_id: string;
            host: string;
            port: number;
            username: string;
            /** @description Command line to paste; its password is the token. */
            ssh_command: string;
            host_key_fingerprint: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            /** @description Open sessions. */
            sessions: number;
        };
        SshAccessCreateRequest: {
            /** @description 3600 if absent. */
            expires_in_seconds?: number;
        };
        SshAccessCreateResult: {
            access_id: string;
            host: string;
            port: number;
            username: string;
            /** @description Command line to paste; its password is the token. */
            ssh_command: string;
            host_key_fingerprint: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            token: string;
        };
        SshAccessDeleteResult: {
            access_id: string;
            /** @enum {string} */
            state: "deleted";
        };
        SshAccessListResult: {
            items: components["schemas"]["SshAccess"][];
            next_cursor: null;
        };
        SshKey: {
            ssh_key_id: string;
            name: string;
            algorithm: string;
            /** @description As ssh-keygen -l shows it. */
            fingerprint: string;
            public_key: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            created_by: {
                type: string;
                id: string;
            };
        };
        SshKeyAddRequest: {
            /** @description One line, as in a .pub file or in authorized_keys without options. */
            public_key: string;
            /** @description The key's comment if absent. */
            name?: string;
            expires_in_seconds?: number;
        };
        SshKeyListResult: {
            items: components["schemas"]["SshKey"][];
            next_cursor: null;
        };
        SshKeyRemoveResult: {
            ssh_key_id: string;
            fingerprint: string;
            /** @enum {string} */
            state: "removed";
        };
        StartedEvent: {
            /** @description The event's position in the stream: the value for `after`. */
            seq: number;
            /** @enum {string} */
            type: "started";
            exec_id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
        };
        Template: {
            template_id: string;
            digest: string;
            description: string;
            min_memory_mib: number;
            default_memory_mib: number;
            tools: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            source?: components["schemas"]["TemplateSource"];
            /** @enum {string} */
            visibility: "host" | "org";
        };
        TemplateBuild: {
            template_id: string;
            build_id: string;
            /** @enum {string} */
            state: "queued" | "pulling" | "building" | "booting" | "testing" | "ready" | "failed";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finished_at: string | null;
            /** @description The last event of its stream. */
            last_seq: number;
            /** @description Of the template, once it is ready. */
            digest: string | null;
            failure: components["schemas"]["BuildFailure"] | null;
        };
        TemplateCreateRequest: {
            /** @description Name for sandboxes to use. The organization's template of that name is replaced once this one is ready. */
            template_id: string;
            from: components["schemas"]["TemplateFrom"];
            /** @description Description in lists of templates. */
            description?: string;
            /** @description A shell script whose programs run in every sandbox of it from the start; "image": its entry point. */
            start?: string;
            /** @description A shell script that exits with 0 once the programs of start can be used. */
            ready?: string;
            /** @description Memory with which it is saved; 256 if absent. */
            min_memory_mib?: number;
            /** @description Default for sandboxes; 512 if absent, or min_memory_mib if that is more. */
            default_memory_mib?: number;
            /** @description Maximum disk size of a sandbox; 8192 if absent. */
            disk_mib?: number;
            /** @description Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address. */
            egress_allowlist?: string[];
            /** @description Secrets for steps, in the files /run/secrets/NAME. */
            secrets?: {
                [key: string]: string;
            };
            /** @description For ARG of the Dockerfile. */
            build_args?: {
                [key: string]: string;
            };
            /** @description Unpack the image and run every step again, without results of earlier builds. */
            no_cache?: boolean;
            /** @description Credentials for the registry, as the text of docker's config.json. */
            registry_auth?: string;
        };
        TemplateCreateResult: {
            template_id: string;
            build_id: string;
            /** @enum {string} */
            state: "queued" | "pulling" | "building" | "booting" | "testing" | "ready" | "failed";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finished_at: string | null;
            /** @description The last event of its stream. */
            last_seq: number;
            /** @description Of the template, once it is ready. */
            digest: string | null;
            failure: components["schemas"]["BuildFailure"] | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        TemplateFrom: {
            /** @description An image of a registry, as docker://… */
            image?: string;
            recipe?: {
                /** @description The image that the steps begin with. */
                from: string;
                steps: string[];
            };
            /** @description The text of a Dockerfile. */
            dockerfile?: string;
            /** @description The build context as a tar, optionally compressed with gzip: 10 MiB at most, 128 MiB unpacked. */
            context?: string;
        };
        TemplateListResult: {
            items: components["schemas"]["Template"][];
            next_cursor: null;
        };
        TemplateRemoveResult: {
            template_id: string;
            /** @enum {string} */
            state: "removed";
        };
        TemplateSource: {
            ref: string;
            index_digest: string | null;
            manifest_digest: string;
            config_digest: string;
        };
        Terminal: {
            terminal_id: string;
            /** @enum {string} */
            state: "running" | "ended";
            /** @description The command, truncated to 256 characters. */
            command: string;
            user: string;
            rows: number;
            cols: number;
            attached: boolean;
            /** @description How many bytes it has shown so far. */
            offset: number;
            exit_code: number | null;
            signal: string | null;
            /**
             * @description Why it ended: the command exited, no client was attached for too long, or it was closed. Null while it runs.
             * @enum {string|null}
             */
            end_reason: "exited" | "detached" | "closed" | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
        };
        TerminalCloseResult: {
            terminal_id: string;
            /** @enum {string} */
            state: "ended";
            exit_code: number | null;
            signal: string | null;
        };
        TerminalCreateRequest: {
            rows: number;
            cols: number;
            /** @description A line that /bin/sh -c runs; the login shell if absent. */
            command?: string;
            /** @description Instead of command: the command and its arguments, run without a shell. */
            argv?: string[];
            /** @description Working directory; the user's home if absent. */
            cwd?: string;
            /** @description User name or id; root if absent. */
            user?: string;
            /** @description TERM of the command; xterm-256color if absent. */
            term?: string;
        };
        TerminalEvent: components["schemas"]["WatchingEvent"] | {
            /** @enum {string} */
            type: "output";
            /** @description Position of its first byte; `after` is this and its length. */
            offset: number;
            data_b64: string;
        } | {
            /** @enum {string} */
            type: "resized";
            rows: number;
            cols: number;
        } | {
            /** @enum {string} */
            type: "typist";
            typist: {
                /** @description Name of the key, or of the person, by which the client attached. */
                name: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                since: string;
            } | null;
        } | {
            /** @enum {string} */
            type: "lost";
            /** @description Position of the first byte that follows, in the terminal's whole output. */
            offset: number;
            /** @description Bytes that were left out. */
            gap: number;
        } | {
            /** @enum {string} */
            type: "exit";
            exit_code: number | null;
            signal: string | null;
        } | components["schemas"]["ErrorEvent"];
        TerminalPage: {
            items: components["schemas"]["Terminal"][];
            next_cursor: string | null;
        };
        TerminalTicket: {
            terminal_id: string;
            /** @description URL to attach to; since and takeover can be added to its query. */
            ws_path: string;
            /** @description Opens this terminal and nothing else until expires_at, as often as needed, while the key that made it is valid: offer the subprotocols roomd.terminal and roomd.token.TOKEN. */
            token: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
        };
        TimelineItem: {
            /** @description Of the audit record; null while in progress. */
            seq: number | null;
            /**
             * @description Lane in which it is drawn: its agent's, or a shared resource's.
             * @enum {string}
             */
            lane: "agent" | "room" | "egress" | "ports";
            agent_id: string | null;
            /** @enum {string} */
            kind: "span" | "mark";
            /** @enum {string} */
            type: "command" | "wait" | "standby" | "message" | "barrier" | "refusal" | "sandbox" | "terminal" | "drive" | "port" | "room";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /**
             * Format: date-time
             * @description The end of a span; null for a mark and while in progress.
             * @example 2026-01-31T12:00:00.000Z
             */
            until: string | null;
            /** @enum {string} */
            outcome: "success" | "denied" | "error";
            /** @description One line. */
            title: string;
            /** @description Its recipients, 16 agents at most. */
            to: string[];
            ref: {
                type: string;
                id: string;
            } | null;
            exit_code: number | null;
            /** @description The trace that it is a part of, if any. */
            trace_id: string | null;
        };
        TopGetResult: {
            items: components["schemas"]["TopItem"][];
            /** @description Sandboxes beyond 1000. */
            not_shown: number;
            host: components["schemas"]["TopHost"] | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        TopHost: {
            /** @description Of the service. */
            uptime_seconds: number;
            rooms: number;
            /** @description Of all organizations, by state. */
            sandboxes: {
                [key: string]: number;
            };
            /** @description Answered since the service started. */
            requests: number;
            cpu: {
                cores: number;
                busy_seconds: number;
                idle_seconds: number;
            };
            memory: components["schemas"]["HostMemory"];
            disk: {
                size_bytes: number;
                free_bytes: number;
            };
            loop: components["schemas"]["HostLoop"];
        };
        TopItem: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id: string;
            sandbox_id: string;
            /** @enum {string} */
            state: "creating" | "starting" | "running" | "pausing" | "paused" | "hibernating" | "hibernated" | "resuming" | "failed" | "destroying" | "destroyed";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            ready_at: string | null;
            cpu: {
                vcpu_count: number;
                /** @description Since it was started. Null while it has no virtual machine. */
                used_seconds: number | null;
            };
            memory: {
                memory_mib: number;
                /** @description Of the host's memory. Null while it has no virtual machine. */
                resident_bytes: number | null;
            };
            disk: {
                used_bytes: number;
            };
            egress: {
                sent_bytes: number;
                received_bytes: number;
                open_connections: number;
            };
        };
        UsageResult: {
            org_id: string;
            plan: string;
            /** @description Whether the plan allows anything at all. */
            entitled: boolean;
            period: {
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                start_at: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                end_at: string;
            };
            rooms: {
                active: number;
                soft_cap: number;
                hard_cap: number;
            };
            sandboxes: {
                active: number;
                soft_cap: number;
                hard_cap: number;
            };
            memory_mib: {
                allocated: number;
                soft_cap: number;
                hard_cap: number;
            };
            disk_gib: {
                /** @description Maximum size of the disks of its sandboxes. */
                allocated: number;
                soft_cap: number;
                hard_cap: number;
            };
            template_mib: {
                /** @description Size of its own templates on the host's disk, rounded up. */
                used: number;
                soft_cap: number;
                hard_cap: number;
            };
            drive: {
                /** @description Of all its drives, including drives kept after their room's end. */
                used_bytes: number;
                soft_cap_bytes: number;
                hard_cap_bytes: number;
            };
            guest_cids: {
                /** @description By the organization's sandboxes. */
                in_use: number;
                /** @description On the host, for all organizations. */
                total: number;
            };
            totals: components["schemas"]["UsageTotals"];
            /** @description Ordered by sandbox time, largest first; days in order of date. */
            groups?: {
                /** @description room_uid, agent_id, key_id or day; null for usage without one, such as a drive without an agent, and for usage beyond the number of groups that a day distinguishes. */
                id: string | null;
                /** @description room_id, agent_id, the key's name or the day. */
                name: string | null;
                totals: components["schemas"]["UsageTotals"];
            }[];
            others?: {
                group_count: number;
                totals: components["schemas"]["UsageTotals"];
            } | null;
            credits: {
                /** @description Granted by the plan and the operator; null: no limit. */
                granted: number | null;
                /** @description At the prices of the time, since the organization was made. */
                used: number;
                remaining: number | null;
            };
            can_create: {
                room: boolean;
                sandbox: boolean;
            };
            /** @description Sentences for a person. */
            warnings: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            as_of: string;
        };
        UsageTotals: {
            /** @description Time in which sandboxes were running; standby is not counted, to the millisecond. */
            sandbox_seconds: number;
            /** @description The same for each vCPU, to the millisecond. */
            vcpu_seconds: number;
            /** @description The same for each MiB of memory, to the millisecond. */
            memory_mib_seconds: number;
            /** @description Commands run by sandbox_exec and execution_start. */
            exec_count: number;
            /** @description Accepted messages, regardless of the recipients. */
            messages: number;
            /** @description Bytes that sandboxes sent to the outside. */
            egress_bytes: number;
            /** @description Bytes stored on the drives of existing rooms, times hours. */
            drive_byte_hours: number;
            /** @description Build time of its own templates, including failed builds, to the millisecond. */
            build_seconds: number;
        };
        Wait: {
            /** @description The waiting agent. */
            agent_id: string;
            /** @enum {string} */
            type: "reply" | "barrier" | "inbox" | "command";
            /** @description The message, the barrier or the execution; null for an inbox. */
            id: string | null;
            /** @description Agents that it waits for, 100 of them at most; empty for an inbox and a command. */
            on: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string;
            /** @description Whether a call of the agent is waiting for it at this moment. */
            held: boolean;
            /** @description Short description: a topic, a kind, a command. */
            about: string;
        };
        WatchingEvent: {
            /** @enum {string} */
            type: "watching";
            /** @description Position of the first byte that follows, in the terminal's whole output. */
            offset: number;
            rows: number;
            cols: number;
            /** @description Bytes before it that are no longer kept. */
            gap: number;
            typist: {
                /** @description Name of the key, or of the person, by which the client attached. */
                name: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                since: string;
            } | null;
        };
        Webhook: {
            /** @example whk_01KG9YXD6P9R2T4W7Y0A3C5E8H */
            webhook_id: string;
            /**
             * @description Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges).
             * @example https://example.org/hooks/roomd
             */
            url: string;
            /** @description Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent. */
            types: string[];
            /** @description Only events of rooms with these names, including rooms made later; null: of all, and events of no room. */
            room_ids: string[] | null;
            /** @description Whether events are sent. Events that occur while it is disabled are sent once it is enabled again. */
            enabled: boolean;
            /**
             * @description Why it is disabled: by request; its receiver answered 410; its receiver accepted nothing for 5 days; its maker's access ended (a person or a key). The caller that enables it becomes its maker.
             * @enum {string|null}
             */
            disabled_reason: "by_request" | "gone" | "failing" | "maker_ended" | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            disabled_at: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            created_by: {
                type: string;
                id: string;
            };
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Until then the previous secret signs too.
             * @example 2026-01-31T12:00:00.000Z
             */
            former_secret_until: string | null;
            /** @description Events that the receiver has accepted. */
            sent_count: number;
            /** @description Events that it did not accept and that will be retried. */
            waiting_count: number;
            /** @description Audit records that are not processed yet. */
            behind_count: number;
            /** @description Audit records that retention deleted before they were processed or sent. Whether the unprocessed records would have been sent is unknown. */
            missed_count: number;
            /** @description Events abandoned after 17 attempts, each time it happened. The receiver accepted others in that time: a webhook whose receiver accepts none is disabled first, and no event is abandoned. */
            failed_count: number;
            /**
             * Format: date-time
             * @description When the receiver last accepted an event.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_sent_at: string | null;
            /**
             * Format: date-time
             * @description Since when it has accepted none.
             * @example 2026-01-31T12:00:00.000Z
             */
            failing_since: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        WebhookCreateRequest: {
            /**
             * @description Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges).
             * @example https://example.org/hooks/roomd
             */
            url: string;
            /** @description Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent. */
            types: string[];
            /** @description Only events of rooms with these names, including rooms made later; null: of all, and events of no room. */
            room_ids?: string[] | null;
            /** @description true if absent. */
            enabled?: boolean;
        };
        WebhookDeleteResult: {
            webhook_id: string;
            /** @enum {string} */
            state: "deleted";
        };
        WebhookDelivery: {
            /**
             * @description The event's id: its record in the audit has it as audit_id.
             * @example evt_01KG9Z2CF0X5B8D1F4H7K9N2Q6
             */
            delivery_id: string;
            webhook_id: string;
            /** @description The event's name. */
            type: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            event_at: string;
            /**
             * @description waiting: it is retried at next_at. delivered: it was accepted. failed: it was abandoned after 17 attempts. lost: the audit's retention deleted it first.
             * @enum {string}
             */
            state: "waiting" | "delivered" | "failed" | "lost";
            /** @description Number of attempts. */
            attempts: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            last_attempt_at: string | null;
            /**
             * Format: date-time
             * @description Time of the next attempt.
             * @example 2026-01-31T12:00:00.000Z
             */
            next_at: string | null;
            /** @description The receiver's last HTTP status; null: no response. */
            status: number | null;
            /** @description Why the last attempt failed, in words. */
            error: string | null;
        };
        WebhookDeliveryPage: {
            items: components["schemas"]["WebhookDelivery"][];
            next_cursor: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        WebhookEvent: {
            /**
             * @description The event's name, as the audit has it.
             * @example sandbox.created
             */
            type: string;
            /**
             * Format: date-time
             * @description When it happened.
             * @example 2026-01-31T12:00:00.000Z
             */
            timestamp: string;
            data: components["schemas"]["WebhookEventData"];
        };
        WebhookEventData: {
            /** @description The record's audit_id, and the header webhook-id. */
            event_id: string;
            org_id: string;
            room_id: string | null;
            room_uid: string | null;
            agent_id: string | null;
            sandbox_id: string | null;
            actor: {
                type: string;
                id: string;
            };
            /** @enum {string} */
            outcome: "success" | "denied" | "error";
            error_code: string | null;
            request_id: string | null;
            /** @description Ids and reasons of the record's details. The whole record is GET /v1/orgs/self/audit?audit_id=EVENT_ID. */
            details: {
                [key: string]: unknown;
            };
        };
        WebhookPage: {
            items: components["schemas"]["Webhook"][];
            next_cursor: string | null;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        WebhookRotateRequest: {
            /** @description How long the previous secret also signs; 86400 if absent. */
            grace_seconds?: number;
        };
        WebhookTest: {
            /** @description The header webhook-id. */
            event_id: string;
            /** @description Whether the receiver accepted it. */
            delivered: boolean;
            /** @description The receiver's HTTP status; null: no response. */
            status: number | null;
            /** @description Why it was not accepted, in words. */
            error: string | null;
            /** @description How long it took. */
            duration_ms: number;
        };
        WebhookUpdateRequest: {
            /**
             * @description Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges).
             * @example https://example.org/hooks/roomd
             */
            url?: string;
            /** @description Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent. */
            types?: string[];
            /** @description Only events of rooms with these names, including rooms made later; null: of all, and events of no room. */
            room_ids?: string[] | null;
            /** @description Whether events are sent. Events that occur while it is disabled are sent once it is enabled again. */
            enabled?: boolean;
        };
        WrittenFile: {
            path: string;
            guest_path: string;
            size_bytes: number;
            sha256: string;
            mode: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            created: boolean;
            /** @description Sentences for a person. */
            warnings?: string[];
        };
        WrittenSandboxFile: {
            path: string;
            size_bytes: number;
            sha256: string;
            mode: string;
            uid: number;
            gid: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            modified_at: string;
            created: boolean;
        };
        HealthInput: Record<string, never>;
        HealthAnswer: components["schemas"]["HealthResult"];
        MetricsInput: Record<string, never>;
        ConfigGetInput: Record<string, never>;
        ConfigGetAnswer: components["schemas"]["ConfigGetResult"];
        MeGetInput: Record<string, never>;
        MeGetAnswer: components["schemas"]["MeGetResult"];
        LocateInput: {
            /** @description Any id; a slash in it is written %2F. */
            id: string;
        };
        LocateAnswer: components["schemas"]["LocateResult"];
        HostListInput: Record<string, never>;
        HostListAnswer: components["schemas"]["HostListResult"];
        HostEvacuateInput: components["schemas"]["HostEvacuateRequest"] & {
            /** @description Name of the host. */
            host: string;
        };
        HostEvacuateAnswer: components["schemas"]["HostEvacuated"];
        OpenapiGetInput: Record<string, never>;
        OpenapiGetAnswer: {
            [key: string]: unknown;
        };
        OrgCreateInput: components["schemas"]["OrgCreateRequest"];
        OrgCreateAnswer: components["schemas"]["OrgCreateResult"];
        OrgDeleteInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description The organization's name, as confirmation. */
            org_name: string;
        };
        OrgDeleteAnswer: components["schemas"]["OrgDeleteResult"];
        KeyCreateInput: components["schemas"]["KeyCreateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
        };
        KeyCreateAnswer: components["schemas"]["NewApiKey"];
        KeyListInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        KeyListAnswer: components["schemas"]["ApiKeyPage"];
        KeyRotateInput: components["schemas"]["KeyRotateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
            key_id: string;
        };
        KeyRotateAnswer: components["schemas"]["KeyRotateResult"];
        KeyRevokeInput: {
            /** @description The organization, or self. */
            org_id: string;
            key_id: string;
        };
        KeyRevokeAnswer: components["schemas"]["RevokedApiKey"];
        WebhookCreateInput: components["schemas"]["WebhookCreateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
        };
        WebhookCreateAnswer: components["schemas"]["NewWebhook"];
        WebhookListInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        WebhookListAnswer: components["schemas"]["WebhookPage"];
        WebhookGetInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
        };
        WebhookGetAnswer: components["schemas"]["Webhook"];
        WebhookUpdateInput: components["schemas"]["WebhookUpdateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
        };
        WebhookUpdateAnswer: components["schemas"]["Webhook"];
        WebhookDeleteInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
        };
        WebhookDeleteAnswer: components["schemas"]["WebhookDeleteResult"];
        WebhookRotateInput: components["schemas"]["WebhookRotateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
        };
        WebhookRotateAnswer: components["schemas"]["NewWebhook"];
        WebhookDeliveriesInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        WebhookDeliveriesAnswer: components["schemas"]["WebhookDeliveryPage"];
        WebhookRedeliverInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
            /** @description The event's id, sent to the receiver as webhook-id; any event that the audit still has. */
            delivery_id: string;
        };
        WebhookRedeliverAnswer: components["schemas"]["WebhookDelivery"];
        WebhookTestInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Which webhook of the organization. */
            webhook_id: string;
        };
        WebhookTestAnswer: components["schemas"]["WebhookTest"];
        BillingGetInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        BillingGetAnswer: components["schemas"]["Billing"];
        BillingCheckoutInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        BillingCheckoutAnswer: components["schemas"]["BillingCheckoutResult"];
        BillingPortalInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        BillingPortalAnswer: components["schemas"]["BillingPortalResult"];
        BillingSuccessInput: {
            /** @description The organization, or self. */
            org_id: string;
            checkout_id: string;
        };
        BillingSuccessAnswer: components["schemas"]["BillingSuccessResult"];
        BillingKeyInput: {
            /** @description The organization, or self. */
            org_id: string;
            checkout_id: string;
        };
        BillingKeyAnswer: components["schemas"]["BillingKeyResult"];
        AccountGetInput: Record<string, never>;
        AccountGetAnswer: components["schemas"]["Account"];
        AccountUpdateInput: components["schemas"]["AccountUpdateRequest"];
        AccountUpdateAnswer: components["schemas"]["Account"];
        AccountDeleteInput: {
            /** @description The account's address, as confirmation. */
            email: string;
        };
        AccountDeleteAnswer: components["schemas"]["AccountDeleteResult"];
        AccountExportInput: Record<string, never>;
        AccountExportAnswer: components["schemas"]["AccountExportResult"];
        SessionListInput: Record<string, never>;
        SessionListAnswer: components["schemas"]["SessionListResult"];
        SessionEndInput: {
            session_id: string;
        };
        SessionEndAnswer: components["schemas"]["SessionEndResult"];
        GrantListInput: Record<string, never>;
        GrantListAnswer: components["schemas"]["GrantListResult"];
        GrantCreateInput: components["schemas"]["GrantCreateRequest"];
        GrantCreateAnswer: components["schemas"]["GrantCreateResult"];
        DeviceDecideInput: components["schemas"]["DeviceDecideRequest"];
        DeviceDecideAnswer: components["schemas"]["DeviceDecideResult"];
        GrantEndInput: {
            grant_id: string;
        };
        GrantEndAnswer: components["schemas"]["GrantEndResult"];
        ApplicationListInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        ApplicationListAnswer: components["schemas"]["ApplicationPage"];
        ApplicationEndInput: {
            /** @description The organization, or self. */
            org_id: string;
            grant_id: string;
        };
        ApplicationEndAnswer: components["schemas"]["ApplicationEndResult"];
        IdentityListInput: Record<string, never>;
        IdentityListAnswer: components["schemas"]["IdentityListResult"];
        IdentityBeginInput: Record<string, never>;
        IdentityBeginAnswer: components["schemas"]["IdentityBeginResult"];
        IdentityRemoveInput: {
            identity_id: string;
        };
        IdentityRemoveAnswer: components["schemas"]["IdentityRemoveResult"];
        PasskeyListInput: Record<string, never>;
        PasskeyListAnswer: components["schemas"]["PasskeyListResult"];
        PasskeyAddInput: components["schemas"]["PasskeyAddRequest"];
        PasskeyAddAnswer: components["schemas"]["Passkey"];
        PasskeyOptionsInput: Record<string, never>;
        PasskeyOptionsAnswer: components["schemas"]["PasskeyOptionsResult"];
        PasskeyRemoveInput: {
            passkey_id: string;
        };
        PasskeyRemoveAnswer: components["schemas"]["PasskeyRemoveResult"];
        MemberListInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        MemberListAnswer: components["schemas"]["MemberListResult"];
        MemberUpdateInput: components["schemas"]["MemberUpdateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
            user_id: string;
        };
        MemberUpdateAnswer: components["schemas"]["Member"];
        MemberRemoveInput: {
            /** @description The organization, or self. */
            org_id: string;
            user_id: string;
        };
        MemberRemoveAnswer: components["schemas"]["MemberRemoveResult"];
        InvitationCreateInput: components["schemas"]["InvitationCreateRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
        };
        InvitationCreateAnswer: components["schemas"]["InvitationCreateResult"];
        InvitationListInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        InvitationListAnswer: components["schemas"]["InvitationListResult"];
        InvitationDeleteInput: {
            /** @description The organization, or self. */
            org_id: string;
            invitation_id: string;
        };
        InvitationDeleteAnswer: components["schemas"]["InvitationDeleteResult"];
        UsageInput: {
            /** @description The organization, or self. */
            org_id: string;
            /**
             * @description Adds groups, which add up to the totals.
             * @enum {string}
             */
            group_by?: "room" | "agent" | "key" | "day";
            /** @description As 2026-01; the current one if absent. */
            month?: string;
        };
        UsageAnswer: components["schemas"]["UsageResult"];
        CreditListInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        CreditListAnswer: components["schemas"]["CreditListResult"];
        TopGetInput: {
            /** @description Only the sandboxes of this room. */
            room_id?: string;
        };
        TopGetAnswer: components["schemas"]["TopGetResult"];
        RoomCreateInput: components["schemas"]["RoomCreateRequest"];
        RoomCreateAnswer: components["schemas"]["Room"];
        RoomListInput: {
            /**
             * @description Only those in this state.
             * @enum {string}
             */
            state?: "active" | "destroying" | "destroyed";
            /** @description Only those with this label, as key:value. */
            label?: string;
            /** @description Only those on this one of several hosts. */
            host?: string;
            /**
             * @description By creation. asc, the oldest first, if absent.
             * @enum {string}
             */
            order?: "asc" | "desc";
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        RoomListAnswer: components["schemas"]["RoomListResult"];
        RoomGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        RoomGetAnswer: components["schemas"]["Room"];
        RoomUpdateInput: components["schemas"]["RoomUpdateRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        RoomUpdateAnswer: components["schemas"]["Room"];
        RoomDestroyInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description Keep or delete the drive.
             * @enum {string}
             */
            drive?: "retain" | "delete";
        };
        RoomDestroyAnswer: components["schemas"]["RoomDestroyResult"];
        SandboxCreateInput: components["schemas"]["SandboxCreateRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description ready (the default): answer when it can run commands. none: answer immediately.
             * @enum {string}
             */
            wait?: "ready" | "none";
            /** @description Longest wait; 60 000 if absent. */
            wait_timeout_ms?: number;
        };
        SandboxCreateAnswer: components["schemas"]["SandboxCreateResult"];
        SandboxListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @enum {string} */
            state?: "creating" | "starting" | "running" | "pausing" | "paused" | "hibernating" | "hibernated" | "resuming" | "failed" | "destroying" | "destroyed";
            /** @description Only those with this label, as key:value. */
            label?: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        SandboxListAnswer: components["schemas"]["SandboxPage"];
        OrgSandboxListInput: {
            /** @description Only the sandboxes of this room. */
            room_id?: string;
            /** @enum {string} */
            state?: "creating" | "starting" | "running" | "pausing" | "paused" | "hibernating" | "hibernated" | "resuming" | "failed" | "destroying" | "destroyed";
            /** @description Only those with this label, as key:value. */
            label?: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        OrgSandboxListAnswer: components["schemas"]["OrgSandboxListResult"];
        SandboxGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description How long to wait while it is starting. */
            wait_ms?: number;
        };
        SandboxGetAnswer: components["schemas"]["Sandbox"];
        SandboxUpdateInput: components["schemas"]["SandboxUpdateRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxUpdateAnswer: components["schemas"]["Sandbox"];
        SandboxDestroyInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxDestroyAnswer: components["schemas"]["SandboxDestroyResult"];
        SandboxStandbyInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxStandbyAnswer: components["schemas"]["Sandbox"];
        SandboxHibernateInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxHibernateAnswer: components["schemas"]["Sandbox"];
        SandboxSnapshotInput: components["schemas"]["SandboxSnapshotRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxSnapshotAnswer: components["schemas"]["Snapshot"];
        SandboxForkInput: components["schemas"]["SandboxForkRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxForkAnswer: components["schemas"]["SandboxForkResult"];
        SandboxRollbackInput: components["schemas"]["SandboxRollbackRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxRollbackAnswer: components["schemas"]["Sandbox"];
        SnapshotListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description The agent that the sandbox serves; unique among the room's live sandboxes.
             * @example worker-1
             */
            agent_id?: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        SnapshotListAnswer: components["schemas"]["SnapshotPage"];
        SnapshotGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            snapshot_id: string;
        };
        SnapshotGetAnswer: components["schemas"]["Snapshot"];
        SnapshotDeleteInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            snapshot_id: string;
        };
        SnapshotDeleteAnswer: components["schemas"]["SnapshotDeleteResult"];
        RoomCheckpointInput: components["schemas"]["RoomCheckpointRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        RoomCheckpointAnswer: components["schemas"]["Checkpoint"];
        CheckpointListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        CheckpointListAnswer: components["schemas"]["CheckpointPage"];
        CheckpointGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Id of a checkpoint of the room. */
            checkpoint_id: string;
        };
        CheckpointGetAnswer: components["schemas"]["Checkpoint"];
        CheckpointDeleteInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Id of a checkpoint of the room. */
            checkpoint_id: string;
        };
        CheckpointDeleteAnswer: components["schemas"]["CheckpointDeleteResult"];
        RoomForkInput: components["schemas"]["RoomForkRequest"] & {
            /**
             * @description The source room.
             * @example build-42
             */
            source_room_id: string;
        };
        RoomForkAnswer: components["schemas"]["RoomForkResult"];
        RoomRestoreInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Id of a checkpoint of the room. */
            checkpoint_id: string;
        };
        RoomRestoreAnswer: components["schemas"]["RoomRestoreResult"];
        RoomMoveInput: components["schemas"]["RoomMoveRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        RoomMoveAnswer: components["schemas"]["RoomMoved"];
        RoomBackupInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        RoomFromBackupInput: {
            /**
             * @description Name of the new room.
             * @example build-42
             */
            room_id: string;
            /** @description Target host, if there are several; else a host with memory. */
            host?: string;
        };
        RoomFromBackupAnswer: components["schemas"]["RoomFromBackup"];
        SandboxResumeInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxResumeAnswer: components["schemas"]["Sandbox"];
        SandboxLogsInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description console if absent.
             * @enum {string}
             */
            source?: "console" | "agent";
            /** @description Byte offset: next_after of the previous answer. */
            after?: number;
            /** @description Most lines; 1000 if absent. An answer ends after 256 KiB. */
            limit?: number;
        };
        SandboxLogsAnswer: components["schemas"]["SandboxLogsResult"];
        SandboxMetricsInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxMetricsAnswer: components["schemas"]["SandboxMetricsResult"];
        EgressGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        EgressGetAnswer: components["schemas"]["Egress"];
        EgressSetInput: components["schemas"]["EgressSetRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        EgressSetAnswer: components["schemas"]["Egress"];
        EgressExplainInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description A host name, an address or a CIDR. */
            host: string;
            /** @description Absent: whether any port is allowed, and which. */
            port?: number;
        };
        EgressExplainAnswer: components["schemas"]["EgressExplanation"];
        SandboxNetworkInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxNetworkAnswer: components["schemas"]["SandboxNetwork"];
        SandboxExecInput: components["schemas"]["SandboxExecRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxExecAnswer: components["schemas"]["ExecResult"];
        SandboxFilePutInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
            /**
             * @description Permissions in octal; if absent, those of the file that is replaced, else 0644.
             * @example 0644
             */
            mode?: string;
            /**
             * @description User of the sandbox, user:group or uid:gid; if absent, that of the file that is replaced, else the user that commands run as.
             * @example 1000:1000
             */
            owner?: string;
            /** @description false: refuse when the file exists; true if absent. */
            overwrite?: boolean;
        };
        SandboxFilePutAnswer: components["schemas"]["WrittenSandboxFile"];
        SandboxFileGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
        };
        SandboxFileListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
            /** @description false if absent. */
            recursive?: boolean;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        SandboxFileListAnswer: components["schemas"]["SandboxFileListResult"];
        SandboxFileDeleteInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
            recursive?: boolean;
        };
        SandboxFileDeleteAnswer: components["schemas"]["SandboxFileDeleteResult"];
        SandboxFileStatInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
            /** @description true: the target of a symbolic link; false if absent. */
            follow?: boolean;
        };
        SandboxFileStatAnswer: components["schemas"]["SandboxFileEntry"];
        SandboxFileMkdirInput: components["schemas"]["SandboxFileMkdirRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxFileMkdirAnswer: components["schemas"]["MadeSandboxDirectory"];
        SandboxFileMoveInput: components["schemas"]["SandboxFileMoveRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxFileMoveAnswer: components["schemas"]["SandboxFileEntry"];
        SandboxFileWatchInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description Absolute path in the sandbox.
             * @example /root/notes.txt
             */
            path: string;
            /** @description Directories below it too; false if absent. */
            recursive?: boolean;
            /** @description cursor of the last event you have. */
            after?: string;
        };
        SandboxFileWatchAnswer: components["schemas"]["FileChangeEvent"] | components["schemas"]["PingEvent"];
        TerminalCreateInput: components["schemas"]["TerminalCreateRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        TerminalCreateAnswer: components["schemas"]["TerminalTicket"];
        TerminalListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        TerminalListAnswer: components["schemas"]["TerminalPage"];
        TerminalGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            terminal_id: string;
        };
        TerminalGetAnswer: components["schemas"]["Terminal"];
        TerminalCloseInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            terminal_id: string;
        };
        TerminalCloseAnswer: components["schemas"]["TerminalCloseResult"];
        TerminalWatchInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            terminal_id: string;
            /** @description How many bytes you have seen; all that is kept is sent if absent. */
            after?: number;
        };
        TerminalWatchAnswer: components["schemas"]["TerminalEvent"] | components["schemas"]["PingEvent"];
        TerminalTokenInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            terminal_id: string;
        };
        TerminalTokenAnswer: components["schemas"]["TerminalTicket"];
        TerminalAttachInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            terminal_id: string;
            /** @description Offset of the first byte wanted; all that is kept if absent. */
            since?: number;
            /** @description Whether to disconnect the client that is attached; otherwise a second client gets 409. */
            takeover?: boolean;
        };
        ScreenGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description Width of the picture, which keeps its proportions; the screen's own if absent or larger than that. */
            width?: number;
        };
        ComputerInput: components["schemas"]["ComputerRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        ComputerAnswer: components["schemas"]["ComputerResult"];
        ScreenTicketInput: components["schemas"]["ScreenTicketRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        ScreenTicketAnswer: components["schemas"]["ScreenTicketResult"];
        ScreenViewInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description From screen_ticket. */
            ticket?: string;
        };
        RecordingStartInput: components["schemas"]["RecordingStartRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        RecordingStartAnswer: components["schemas"]["Recording"];
        RecordingListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        RecordingListAnswer: components["schemas"]["RecordingListResult"];
        RecordingGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            recording_id: string;
        };
        RecordingGetAnswer: components["schemas"]["Recording"];
        RecordingDeleteInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            recording_id: string;
        };
        RecordingDeleteAnswer: components["schemas"]["RecordingDeleteResult"];
        RecordingStopInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            recording_id: string;
        };
        RecordingStopAnswer: components["schemas"]["Recording"];
        RecordingDataInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            recording_id: string;
        };
        RecordingFilmInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            recording_id: string;
        };
        SshAccessCreateInput: components["schemas"]["SshAccessCreateRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SshAccessCreateAnswer: components["schemas"]["SshAccessCreateResult"];
        SshAccessListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SshAccessListAnswer: components["schemas"]["SshAccessListResult"];
        SshAccessDeleteInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            access_id: string;
        };
        SshAccessDeleteAnswer: components["schemas"]["SshAccessDeleteResult"];
        SshKeyAddInput: components["schemas"]["SshKeyAddRequest"] & {
            /** @description The organization, or self. */
            org_id: string;
        };
        SshKeyAddAnswer: components["schemas"]["SshKey"];
        SshKeyListInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        SshKeyListAnswer: components["schemas"]["SshKeyListResult"];
        SshKeyRemoveInput: {
            /** @description The organization, or self. */
            org_id: string;
            ssh_key_id: string;
        };
        SshKeyRemoveAnswer: components["schemas"]["SshKeyRemoveResult"];
        SandboxExposePortInput: components["schemas"]["SandboxExposePortRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        SandboxExposePortAnswer: components["schemas"]["ExposedPort"];
        PortListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        PortListAnswer: components["schemas"]["ExposedPortPage"];
        SandboxUnexposePortInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /**
             * @description The port on which the server in the sandbox listens.
             * @example 8000
             */
            port: number;
        };
        SandboxUnexposePortAnswer: components["schemas"]["SandboxUnexposePortResult"];
        BrowserGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        BrowserGetAnswer: components["schemas"]["BrowserGetResult"];
        ExecutionStartInput: components["schemas"]["ExecutionStartRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
        };
        ExecutionStartAnswer: components["schemas"]["Execution"];
        ExecutionListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        ExecutionListAnswer: components["schemas"]["ExecutionPage"];
        ExecutionGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description The execution, by its exec_id. */
            exec_id: string;
        };
        ExecutionGetAnswer: components["schemas"]["Execution"];
        ExecutionEndInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description The execution, by its exec_id. */
            exec_id: string;
        };
        ExecutionEndAnswer: components["schemas"]["Execution"];
        ExecutionStreamInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description The execution, by its exec_id. */
            exec_id: string;
            /** @description seq of the last event you have; from the beginning if absent. */
            after?: number;
            /** @description Whether to wait for further output; true if absent. */
            follow?: boolean;
        };
        ExecutionStreamAnswer: components["schemas"]["ExecutionEvent"] | components["schemas"]["PingEvent"];
        ExecutionStdinInput: components["schemas"]["ExecutionStdinRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description The execution, by its exec_id. */
            exec_id: string;
        };
        ExecutionStdinAnswer: components["schemas"]["Execution"];
        ExecutionSignalInput: components["schemas"]["ExecutionSignalRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description agent_id of a live sandbox of the room, or its sandbox_id. */
            sandbox: string;
            /** @description The execution, by its exec_id. */
            exec_id: string;
        };
        ExecutionSignalAnswer: components["schemas"]["Execution"];
        FsWriteInput: components["schemas"]["FsWriteRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        FsWriteAnswer: components["schemas"]["FsWriteResult"];
        FsListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path?: string;
            /** @description If absent: true without a path, else false. */
            recursive?: boolean;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        FsListAnswer: components["schemas"]["FsListResult"];
        FsReadInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
            /** @description The first byte to read; 0 if absent. */
            offset?: number;
            /** @description 16 MiB if absent. */
            length?: number;
            /**
             * @description json if absent. raw: the bytes themselves; the headers for files apply to these only.
             * @enum {string}
             */
            format?: "json" | "raw";
        };
        FsReadAnswer: components["schemas"]["FsReadResult"];
        FsStatInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
        };
        FsStatAnswer: components["schemas"]["DriveStat"];
        FsMkdirInput: components["schemas"]["FsMkdirRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        FsMkdirAnswer: components["schemas"]["FsMkdirResult"];
        FsMoveInput: components["schemas"]["FsMoveRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        FsMoveAnswer: components["schemas"]["DriveStat"];
        FsDeleteInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
            recursive?: boolean;
        };
        FsDeleteAnswer: components["schemas"]["FsDeleteResult"];
        FilePutInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
            /**
             * @description Permissions in octal; 0644 if absent.
             * @example 0644
             */
            mode?: string;
            /**
             * @description uid:gid, or root; a drive knows no other user names. Of directories above it that are made too.
             * @example 1000:1000
             */
            owner?: string;
            overwrite?: boolean;
        };
        FilePutAnswer: components["schemas"]["WrittenFile"];
        FileGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description x, /x and /mnt/drive/x are the same file.
             * @example /notes.txt
             */
            path: string;
        };
        AgentSendInput: components["schemas"]["AgentSendRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        AgentSendAnswer: components["schemas"]["SentMessage"];
        AgentWaitInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description Whose inbox.
             * @example worker-1
             */
            agent_id?: string;
            /** @description A topic, or a pattern as for subscriptions. */
            topic?: string;
            /**
             * @description Only messages of this kind.
             * @enum {string}
             */
            kind?: "event" | "request" | "response";
            /**
             * @description Only messages from this agent.
             * @example worker-1
             */
            source?: string;
            /** @description next_after of the previous answer. */
            after?: number;
            /** @description 100 if absent. */
            limit?: number;
            /** @description How long to wait for the first; 0 if absent. */
            wait_ms?: number;
            /** @description next_cursor of the previous page, instead of after. */
            cursor?: string;
        };
        AgentWaitAnswer: components["schemas"]["AgentWaitResult"];
        MessageSendManyInput: components["schemas"]["MessageSendManyRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        MessageSendManyAnswer: components["schemas"]["MessageSendManyResult"];
        MessageGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description The message's name, unique in the room. */
            message_id: string;
        };
        MessageGetAnswer: components["schemas"]["MessageGetResult"];
        MessageAckInput: components["schemas"]["MessageAckRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description The message's name, unique in the room. */
            message_id: string;
        };
        MessageAckAnswer: components["schemas"]["MessageAckResult"];
        MessageReplyInput: components["schemas"]["MessageReplyRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description The message's name, unique in the room. */
            message_id: string;
        };
        MessageReplyAnswer: components["schemas"]["MessageReplyResult"];
        AgentSubscribeInput: components["schemas"]["AgentSubscribeRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /**
             * @description The agent.
             * @example worker-1
             */
            agent_id: string;
        };
        AgentSubscribeAnswer: components["schemas"]["AgentSubscribeResult"];
        AgentListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        AgentListAnswer: components["schemas"]["AgentPage"];
        BarrierArriveInput: components["schemas"]["BarrierArriveRequest"] & {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        BarrierArriveAnswer: components["schemas"]["BarrierArriveResult"];
        BarrierListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        BarrierListAnswer: components["schemas"]["BarrierPage"];
        BarrierGetInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description The barrier's name in the room. */
            barrier_id: string;
        };
        BarrierGetAnswer: components["schemas"]["Barrier"];
        BarrierCancelInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description The barrier's name in the room. */
            barrier_id: string;
        };
        BarrierCancelAnswer: components["schemas"]["Barrier"];
        RoomOverviewInput: {
            /**
             * @description Only those in this state.
             * @enum {string}
             */
            state?: "active" | "destroying" | "destroyed";
            /** @description Only those with this label, as key:value. */
            label?: string;
            /** @description Only those on this one of several hosts. */
            host?: string;
            /**
             * @description By creation. asc, the oldest first, if absent.
             * @enum {string}
             */
            order?: "asc" | "desc";
            /** @description Most items to return; 100 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
        };
        RoomOverviewAnswer: components["schemas"]["RoomOverviewResult"];
        RoomWaitsInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        RoomWaitsAnswer: components["schemas"]["RoomWaitsResult"];
        RoomTimelineInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description RFC 3339 or unix seconds. */
            since?: string;
            /** @description RFC 3339 or unix seconds. */
            until?: string;
            /** @description Only actions of this agent, or on it. */
            agent_id?: string;
            /** @description Only these types, separated by commas. */
            types?: string;
            /** @description 200 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
            /**
             * @description desc, the newest first, if absent.
             * @enum {string}
             */
            order?: "asc" | "desc";
        };
        RoomTimelineAnswer: components["schemas"]["RoomTimelineResult"];
        RoomNowInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description Whether to wait for changes; true if absent. */
            follow?: boolean;
        };
        RoomNowAnswer: components["schemas"]["RoomNowLine"] | components["schemas"]["PingEvent"];
        LiveSocketInput: Record<string, never>;
        TemplateListInput: Record<string, never>;
        TemplateListAnswer: components["schemas"]["TemplateListResult"];
        TemplateCreateInput: components["schemas"]["TemplateCreateRequest"];
        TemplateCreateAnswer: components["schemas"]["TemplateCreateResult"];
        TemplateGetInput: {
            template_id: string;
        };
        TemplateGetAnswer: components["schemas"]["Template"];
        TemplateRemoveInput: {
            template_id: string;
        };
        TemplateRemoveAnswer: components["schemas"]["TemplateRemoveResult"];
        TemplateBuildGetInput: {
            template_id: string;
            /** @description The build, by its build_id. */
            build_id: string;
        };
        TemplateBuildGetAnswer: components["schemas"]["TemplateBuild"];
        TemplateBuildEndInput: {
            template_id: string;
            /** @description The build, by its build_id. */
            build_id: string;
        };
        TemplateBuildEndAnswer: components["schemas"]["TemplateBuild"];
        TemplateBuildStreamInput: {
            template_id: string;
            /** @description The build, by its build_id. */
            build_id: string;
            /** @description seq of the last event you have; from the beginning if absent. */
            after?: number;
            /** @description Whether to wait for further events; true if absent. */
            follow?: boolean;
        };
        TemplateBuildStreamAnswer: components["schemas"]["BuildEvent"] | components["schemas"]["PingEvent"];
        AuditListInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description RFC 3339 or unix seconds. */
            since?: string;
            /** @description RFC 3339 or unix seconds. */
            until?: string;
            /** @description Prefix of the event's name. */
            event?: string;
            /** @description Only actions of this agent, or on it. */
            agent_id?: string;
            /**
             * @description Only records with this outcome.
             * @enum {string}
             */
            outcome?: "success" | "denied" | "error";
            /**
             * @description Only records from this source.
             * @enum {string}
             */
            source?: "rest" | "mcp" | "vsock" | "ssh" | "web" | "cli" | "reconciler";
            /** @description Only actions of this key, person or sandbox, by actor.id. */
            actor_id?: string;
            /** @description Only records of this request. */
            request_id?: string;
            /** @description Only records of this trace. */
            trace_id?: string;
            /** @description Only this record. */
            audit_id?: string;
            /** @description false: without calls that only read, unless they were refused or failed; true if absent. */
            reads?: boolean;
            /** @description 200 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
            /**
             * @description desc, the newest first, if absent.
             * @enum {string}
             */
            order?: "asc" | "desc";
        };
        AuditListAnswer: components["schemas"]["AuditRecordPage"];
        OrgAuditListInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description RFC 3339 or unix seconds. */
            since?: string;
            /** @description RFC 3339 or unix seconds. */
            until?: string;
            /** @description Prefix of the event's name. */
            event?: string;
            /** @description Only actions of this agent, or on it. */
            agent_id?: string;
            /**
             * @description Only records with this outcome.
             * @enum {string}
             */
            outcome?: "success" | "denied" | "error";
            /**
             * @description Only records from this source.
             * @enum {string}
             */
            source?: "rest" | "mcp" | "vsock" | "ssh" | "web" | "cli" | "reconciler";
            /** @description Only actions of this key, person or sandbox, by actor.id. */
            actor_id?: string;
            /** @description Only records of this request. */
            request_id?: string;
            /** @description Only records of this trace. */
            trace_id?: string;
            /** @description Only this record. */
            audit_id?: string;
            /** @description false: without calls that only read, unless they were refused or failed; true if absent. */
            reads?: boolean;
            /** @description 200 if absent. */
            limit?: number;
            /** @description next_cursor of the previous page, unchanged. */
            cursor?: string;
            /**
             * @description desc, the newest first, if absent.
             * @enum {string}
             */
            order?: "asc" | "desc";
            /** @description Only rooms of this name, destroyed ones too. */
            room_id?: string;
        };
        OrgAuditListAnswer: components["schemas"]["AuditRecordPage"];
        AuditSummaryInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description RFC 3339 or unix seconds. */
            since?: string;
            /** @description RFC 3339 or unix seconds. */
            until?: string;
            /** @description Prefix of the event's name. */
            event?: string;
            /** @description Only actions of this agent, or on it. */
            agent_id?: string;
            /**
             * @description Only records with this outcome.
             * @enum {string}
             */
            outcome?: "success" | "denied" | "error";
            /**
             * @description Only records from this source.
             * @enum {string}
             */
            source?: "rest" | "mcp" | "vsock" | "ssh" | "web" | "cli" | "reconciler";
            /** @description Only actions of this key, person or sandbox, by actor.id. */
            actor_id?: string;
            /** @description Only records of this request. */
            request_id?: string;
            /** @description Only records of this trace. */
            trace_id?: string;
            /** @description Only this record. */
            audit_id?: string;
            /** @description false: without calls that only read, unless they were refused or failed; true if absent. */
            reads?: boolean;
        };
        AuditSummaryAnswer: components["schemas"]["AuditSummary"];
        OrgAuditSummaryInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description RFC 3339 or unix seconds. */
            since?: string;
            /** @description RFC 3339 or unix seconds. */
            until?: string;
            /** @description Prefix of the event's name. */
            event?: string;
            /** @description Only actions of this agent, or on it. */
            agent_id?: string;
            /**
             * @description Only records with this outcome.
             * @enum {string}
             */
            outcome?: "success" | "denied" | "error";
            /**
             * @description Only records from this source.
             * @enum {string}
             */
            source?: "rest" | "mcp" | "vsock" | "ssh" | "web" | "cli" | "reconciler";
            /** @description Only actions of this key, person or sandbox, by actor.id. */
            actor_id?: string;
            /** @description Only records of this request. */
            request_id?: string;
            /** @description Only records of this trace. */
            trace_id?: string;
            /** @description Only this record. */
            audit_id?: string;
            /** @description false: without calls that only read, unless they were refused or failed; true if absent. */
            reads?: boolean;
            /** @description Only rooms of this name, destroyed ones too. */
            room_id?: string;
        };
        OrgAuditSummaryAnswer: components["schemas"]["AuditSummary"];
        AuditVerifyInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
        };
        AuditVerifyAnswer: components["schemas"]["AuditVerdict"];
        OrgAuditVerifyInput: {
            /** @description The organization, or self. */
            org_id: string;
        };
        OrgAuditVerifyAnswer: components["schemas"]["OrgAuditVerdict"];
        RoomEventsInput: {
            /**
             * @description Name of the room, unique among the organization's active rooms.
             * @example build-42
             */
            room_id: string;
            /** @description seq of the last event you have; if absent, only new events are sent. */
            after?: number;
            /** @description Whether to wait for new events; true if absent. */
            follow?: boolean;
        };
        RoomEventsAnswer: components["schemas"]["AuditRecord"] | components["schemas"]["PingEvent"];
        OrgEventsInput: {
            /** @description The organization, or self. */
            org_id: string;
            /** @description Cursor of the last event received, unchanged; 0: from the first that is kept; absent: from now on. */
            after?: string;
            /** @description Whether to wait for new events; true if absent. */
            follow?: boolean;
        };
        OrgEventsAnswer: components["schemas"]["OrgEvent"] | components["schemas"]["PingEvent"];
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Account = components['schemas']['Account'];
export type AccountDeleteResult = components['schemas']['AccountDeleteResult'];
export type AccountExportResult = components['schemas']['AccountExportResult'];
export type AccountUpdateRequest = components['schemas']['AccountUpdateRequest'];
export type Agent = components['schemas']['Agent'];
export type AgentPage = components['schemas']['AgentPage'];
export type AgentSendRequest = components['schemas']['AgentSendRequest'];
export type AgentSubscribeRequest = components['schemas']['AgentSubscribeRequest'];
export type AgentSubscribeResult = components['schemas']['AgentSubscribeResult'];
export type AgentWaitResult = components['schemas']['AgentWaitResult'];
export type ApiKey = components['schemas']['ApiKey'];
export type ApiKeyPage = components['schemas']['ApiKeyPage'];
export type Application = components['schemas']['Application'];
export type ApplicationEndResult = components['schemas']['ApplicationEndResult'];
export type ApplicationPage = components['schemas']['ApplicationPage'];
export type AuditRecord = components['schemas']['AuditRecord'];
export type AuditRecordPage = components['schemas']['AuditRecordPage'];
export type AuditSummary = components['schemas']['AuditSummary'];
export type AuditVerdict = components['schemas']['AuditVerdict'];
export type Barrier = components['schemas']['Barrier'];
export type BarrierArriveRequest = components['schemas']['BarrierArriveRequest'];
export type BarrierArriveResult = components['schemas']['BarrierArriveResult'];
export type BarrierPage = components['schemas']['BarrierPage'];
export type Billing = components['schemas']['Billing'];
export type BillingCheckoutResult = components['schemas']['BillingCheckoutResult'];
export type BillingKeyResult = components['schemas']['BillingKeyResult'];
export type BillingPortalResult = components['schemas']['BillingPortalResult'];
export type BillingSuccessResult = components['schemas']['BillingSuccessResult'];
export type BrowserGetResult = components['schemas']['BrowserGetResult'];
export type BuildEvent = components['schemas']['BuildEvent'];
export type BuildExitEvent = components['schemas']['BuildExitEvent'];
export type BuildFailure = components['schemas']['BuildFailure'];
export type BuildOutputEvent = components['schemas']['BuildOutputEvent'];
export type BuildStartedEvent = components['schemas']['BuildStartedEvent'];
export type BuildStateEvent = components['schemas']['BuildStateEvent'];
export type Checkpoint = components['schemas']['Checkpoint'];
export type CheckpointDeleteResult = components['schemas']['CheckpointDeleteResult'];
export type CheckpointPage = components['schemas']['CheckpointPage'];
export type CommandLine = components['schemas']['CommandLine'];
export type ComputerRequest = components['schemas']['ComputerRequest'];
export type ComputerResult = components['schemas']['ComputerResult'];
export type ConfigGetResult = components['schemas']['ConfigGetResult'];
export type CreditListResult = components['schemas']['CreditListResult'];
export type DeadlockLine = components['schemas']['DeadlockLine'];
export type DeviceDecideRequest = components['schemas']['DeviceDecideRequest'];
export type DeviceDecideResult = components['schemas']['DeviceDecideResult'];
export type DriveEntry = components['schemas']['DriveEntry'];
export type DriveStat = components['schemas']['DriveStat'];
export type Egress = components['schemas']['Egress'];
export type EgressExplanation = components['schemas']['EgressExplanation'];
export type EgressSetRequest = components['schemas']['EgressSetRequest'];
export type EndedMade = components['schemas']['EndedMade'];
export type ErrorEvent = components['schemas']['ErrorEvent'];
export type EvacuatedRoom = components['schemas']['EvacuatedRoom'];
export type ExecResult = components['schemas']['ExecResult'];
export type Execution = components['schemas']['Execution'];
export type ExecutionEvent = components['schemas']['ExecutionEvent'];
export type ExecutionPage = components['schemas']['ExecutionPage'];
export type ExecutionSignalRequest = components['schemas']['ExecutionSignalRequest'];
export type ExecutionStartRequest = components['schemas']['ExecutionStartRequest'];
export type ExecutionStdinRequest = components['schemas']['ExecutionStdinRequest'];
export type ExitEvent = components['schemas']['ExitEvent'];
export type ExposedPort = components['schemas']['ExposedPort'];
export type ExposedPortPage = components['schemas']['ExposedPortPage'];
export type FieldError = components['schemas']['FieldError'];
export type FileChangeEvent = components['schemas']['FileChangeEvent'];
export type FileChanged = components['schemas']['FileChanged'];
export type FileWatchingEvent = components['schemas']['FileWatchingEvent'];
export type Fork = components['schemas']['Fork'];
export type ForkProblem = components['schemas']['ForkProblem'];
export type FsDeleteResult = components['schemas']['FsDeleteResult'];
export type FsListResult = components['schemas']['FsListResult'];
export type FsMkdirRequest = components['schemas']['FsMkdirRequest'];
export type FsMkdirResult = components['schemas']['FsMkdirResult'];
export type FsMoveRequest = components['schemas']['FsMoveRequest'];
export type FsReadResult = components['schemas']['FsReadResult'];
export type FsWriteRequest = components['schemas']['FsWriteRequest'];
export type FsWriteResult = components['schemas']['FsWriteResult'];
export type Grant = components['schemas']['Grant'];
export type GrantCreateRequest = components['schemas']['GrantCreateRequest'];
export type GrantCreateResult = components['schemas']['GrantCreateResult'];
export type GrantEndResult = components['schemas']['GrantEndResult'];
export type GrantListResult = components['schemas']['GrantListResult'];
export type HealthCheck = components['schemas']['HealthCheck'];
export type HealthResult = components['schemas']['HealthResult'];
export type Host = components['schemas']['Host'];
export type HostCapacity = components['schemas']['HostCapacity'];
export type HostChain = components['schemas']['HostChain'];
export type HostDisk = components['schemas']['HostDisk'];
export type HostEvacuateRequest = components['schemas']['HostEvacuateRequest'];
export type HostEvacuated = components['schemas']['HostEvacuated'];
export type HostListResult = components['schemas']['HostListResult'];
export type HostLoop = components['schemas']['HostLoop'];
export type HostMemory = components['schemas']['HostMemory'];
export type Identity = components['schemas']['Identity'];
export type IdentityBeginResult = components['schemas']['IdentityBeginResult'];
export type IdentityListResult = components['schemas']['IdentityListResult'];
export type IdentityRemoveResult = components['schemas']['IdentityRemoveResult'];
export type Invitation = components['schemas']['Invitation'];
export type InvitationCreateRequest = components['schemas']['InvitationCreateRequest'];
export type InvitationCreateResult = components['schemas']['InvitationCreateResult'];
export type InvitationDeleteResult = components['schemas']['InvitationDeleteResult'];
export type InvitationListResult = components['schemas']['InvitationListResult'];
export type KeyCreateRequest = components['schemas']['KeyCreateRequest'];
export type KeyRotateRequest = components['schemas']['KeyRotateRequest'];
export type KeyRotateResult = components['schemas']['KeyRotateResult'];
export type LedgerEntry = components['schemas']['LedgerEntry'];
export type LeftOut = components['schemas']['LeftOut'];
export type LocateResult = components['schemas']['LocateResult'];
export type LoopPiece = components['schemas']['LoopPiece'];
export type MadeSandboxDirectory = components['schemas']['MadeSandboxDirectory'];
export type MeGetResult = components['schemas']['MeGetResult'];
export type Member = components['schemas']['Member'];
export type MemberListResult = components['schemas']['MemberListResult'];
export type MemberRemoveResult = components['schemas']['MemberRemoveResult'];
export type MemberUpdateRequest = components['schemas']['MemberUpdateRequest'];
export type Membership = components['schemas']['Membership'];
export type Message = components['schemas']['Message'];
export type MessageAckRequest = components['schemas']['MessageAckRequest'];
export type MessageAckResult = components['schemas']['MessageAckResult'];
export type MessageGetResult = components['schemas']['MessageGetResult'];
export type MessageReceipt = components['schemas']['MessageReceipt'];
export type MessageReplyRequest = components['schemas']['MessageReplyRequest'];
export type MessageReplyResult = components['schemas']['MessageReplyResult'];
export type MessageSendManyRequest = components['schemas']['MessageSendManyRequest'];
export type MessageSendManyResult = components['schemas']['MessageSendManyResult'];
export type MessageToSend = components['schemas']['MessageToSend'];
export type NetworkPlace = components['schemas']['NetworkPlace'];
export type NewApiKey = components['schemas']['NewApiKey'];
export type NewWebhook = components['schemas']['NewWebhook'];
export type OrgAuditVerdict = components['schemas']['OrgAuditVerdict'];
export type OrgCreateRequest = components['schemas']['OrgCreateRequest'];
export type OrgCreateResult = components['schemas']['OrgCreateResult'];
export type OrgDeleteResult = components['schemas']['OrgDeleteResult'];
export type OrgEvent = components['schemas']['OrgEvent'];
export type OrgSandboxListResult = components['schemas']['OrgSandboxListResult'];
export type OutputEvent = components['schemas']['OutputEvent'];
export type Passkey = components['schemas']['Passkey'];
export type PasskeyAddRequest = components['schemas']['PasskeyAddRequest'];
export type PasskeyListResult = components['schemas']['PasskeyListResult'];
export type PasskeyOptionsResult = components['schemas']['PasskeyOptionsResult'];
export type PasskeyRemoveResult = components['schemas']['PasskeyRemoveResult'];
export type PingEvent = components['schemas']['PingEvent'];
export type Plan = components['schemas']['Plan'];
export type PortTraffic = components['schemas']['PortTraffic'];
export type Problem = components['schemas']['Problem'];
export type Recording = components['schemas']['Recording'];
export type RecordingDeleteResult = components['schemas']['RecordingDeleteResult'];
export type RecordingListResult = components['schemas']['RecordingListResult'];
export type RecordingStartRequest = components['schemas']['RecordingStartRequest'];
export type RevokedApiKey = components['schemas']['RevokedApiKey'];
export type Room = components['schemas']['Room'];
export type RoomCheckpointRequest = components['schemas']['RoomCheckpointRequest'];
export type RoomCreateRequest = components['schemas']['RoomCreateRequest'];
export type RoomDestroyResult = components['schemas']['RoomDestroyResult'];
export type RoomForkRequest = components['schemas']['RoomForkRequest'];
export type RoomForkResult = components['schemas']['RoomForkResult'];
export type RoomFromBackup = components['schemas']['RoomFromBackup'];
export type RoomGlance = components['schemas']['RoomGlance'];
export type RoomListResult = components['schemas']['RoomListResult'];
export type RoomMoveRequest = components['schemas']['RoomMoveRequest'];
export type RoomMoved = components['schemas']['RoomMoved'];
export type RoomNow = components['schemas']['RoomNow'];
export type RoomNowLine = components['schemas']['RoomNowLine'];
export type RoomOverviewResult = components['schemas']['RoomOverviewResult'];
export type RoomRestoreResult = components['schemas']['RoomRestoreResult'];
export type RoomTimelineResult = components['schemas']['RoomTimelineResult'];
export type RoomUpdateRequest = components['schemas']['RoomUpdateRequest'];
export type RoomWaitsResult = components['schemas']['RoomWaitsResult'];
export type RunningCommand = components['schemas']['RunningCommand'];
export type Sandbox = components['schemas']['Sandbox'];
export type SandboxCreateRequest = components['schemas']['SandboxCreateRequest'];
export type SandboxCreateResult = components['schemas']['SandboxCreateResult'];
export type SandboxDestroyResult = components['schemas']['SandboxDestroyResult'];
export type SandboxExecRequest = components['schemas']['SandboxExecRequest'];
export type SandboxExposePortRequest = components['schemas']['SandboxExposePortRequest'];
export type SandboxFileDeleteResult = components['schemas']['SandboxFileDeleteResult'];
export type SandboxFileEntry = components['schemas']['SandboxFileEntry'];
export type SandboxFileListResult = components['schemas']['SandboxFileListResult'];
export type SandboxFileMkdirRequest = components['schemas']['SandboxFileMkdirRequest'];
export type SandboxFileMoveRequest = components['schemas']['SandboxFileMoveRequest'];
export type SandboxForkRequest = components['schemas']['SandboxForkRequest'];
export type SandboxForkResult = components['schemas']['SandboxForkResult'];
export type SandboxLogsResult = components['schemas']['SandboxLogsResult'];
export type SandboxMetricsResult = components['schemas']['SandboxMetricsResult'];
export type SandboxNetwork = components['schemas']['SandboxNetwork'];
export type SandboxPage = components['schemas']['SandboxPage'];
export type SandboxRollbackRequest = components['schemas']['SandboxRollbackRequest'];
export type SandboxSnapshotRequest = components['schemas']['SandboxSnapshotRequest'];
export type SandboxUnexposePortResult = components['schemas']['SandboxUnexposePortResult'];
export type SandboxUpdateRequest = components['schemas']['SandboxUpdateRequest'];
export type SavedOutput = components['schemas']['SavedOutput'];
export type ScreenTicketRequest = components['schemas']['ScreenTicketRequest'];
export type ScreenTicketResult = components['schemas']['ScreenTicketResult'];
export type SentMessage = components['schemas']['SentMessage'];
export type Session = components['schemas']['Session'];
export type SessionEndResult = components['schemas']['SessionEndResult'];
export type SessionListResult = components['schemas']['SessionListResult'];
export type ShownPort = components['schemas']['ShownPort'];
export type Snapshot = components['schemas']['Snapshot'];
export type SnapshotDeleteResult = components['schemas']['SnapshotDeleteResult'];
export type SnapshotPage = components['schemas']['SnapshotPage'];
export type SshAccess = components['schemas']['SshAccess'];
export type SshAccessCreateRequest = components['schemas']['SshAccessCreateRequest'];
export type SshAccessCreateResult = components['schemas']['SshAccessCreateResult'];
export type SshAccessDeleteResult = components['schemas']['SshAccessDeleteResult'];
export type SshAccessListResult = components['schemas']['SshAccessListResult'];
export type SshKey = components['schemas']['SshKey'];
export type SshKeyAddRequest = components['schemas']['SshKeyAddRequest'];
export type SshKeyListResult = components['schemas']['SshKeyListResult'];
export type SshKeyRemoveResult = components['schemas']['SshKeyRemoveResult'];
export type StartedEvent = components['schemas']['StartedEvent'];
export type Template = components['schemas']['Template'];
export type TemplateBuild = components['schemas']['TemplateBuild'];
export type TemplateCreateRequest = components['schemas']['TemplateCreateRequest'];
export type TemplateCreateResult = components['schemas']['TemplateCreateResult'];
export type TemplateFrom = components['schemas']['TemplateFrom'];
export type TemplateListResult = components['schemas']['TemplateListResult'];
export type TemplateRemoveResult = components['schemas']['TemplateRemoveResult'];
export type TemplateSource = components['schemas']['TemplateSource'];
export type Terminal = components['schemas']['Terminal'];
export type TerminalCloseResult = components['schemas']['TerminalCloseResult'];
export type TerminalCreateRequest = components['schemas']['TerminalCreateRequest'];
export type TerminalEvent = components['schemas']['TerminalEvent'];
export type TerminalPage = components['schemas']['TerminalPage'];
export type TerminalTicket = components['schemas']['TerminalTicket'];
export type TimelineItem = components['schemas']['TimelineItem'];
export type TopGetResult = components['schemas']['TopGetResult'];
export type TopHost = components['schemas']['TopHost'];
export type TopItem = components['schemas']['TopItem'];
export type UsageResult = components['schemas']['UsageResult'];
export type UsageTotals = components['schemas']['UsageTotals'];
export type Wait = components['schemas']['Wait'];
export type WatchingEvent = components['schemas']['WatchingEvent'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookCreateRequest = components['schemas']['WebhookCreateRequest'];
export type WebhookDeleteResult = components['schemas']['WebhookDeleteResult'];
export type WebhookDelivery = components['schemas']['WebhookDelivery'];
export type WebhookDeliveryPage = components['schemas']['WebhookDeliveryPage'];
export type WebhookEvent = components['schemas']['WebhookEvent'];
export type WebhookEventData = components['schemas']['WebhookEventData'];
export type WebhookPage = components['schemas']['WebhookPage'];
export type WebhookRotateRequest = components['schemas']['WebhookRotateRequest'];
export type WebhookTest = components['schemas']['WebhookTest'];
export type WebhookUpdateRequest = components['schemas']['WebhookUpdateRequest'];
export type WrittenFile = components['schemas']['WrittenFile'];
export type WrittenSandboxFile = components['schemas']['WrittenSandboxFile'];
export type HealthInput = components['schemas']['HealthInput'];
export type HealthAnswer = components['schemas']['HealthAnswer'];
export type MetricsInput = components['schemas']['MetricsInput'];
export type ConfigGetInput = components['schemas']['ConfigGetInput'];
export type ConfigGetAnswer = components['schemas']['ConfigGetAnswer'];
export type MeGetInput = components['schemas']['MeGetInput'];
export type MeGetAnswer = components['schemas']['MeGetAnswer'];
export type LocateInput = components['schemas']['LocateInput'];
export type LocateAnswer = components['schemas']['LocateAnswer'];
export type HostListInput = components['schemas']['HostListInput'];
export type HostListAnswer = components['schemas']['HostListAnswer'];
export type HostEvacuateInput = components['schemas']['HostEvacuateInput'];
export type HostEvacuateAnswer = components['schemas']['HostEvacuateAnswer'];
export type OpenapiGetInput = components['schemas']['OpenapiGetInput'];
export type OpenapiGetAnswer = components['schemas']['OpenapiGetAnswer'];
export type OrgCreateInput = components['schemas']['OrgCreateInput'];
export type OrgCreateAnswer = components['schemas']['OrgCreateAnswer'];
export type OrgDeleteInput = components['schemas']['OrgDeleteInput'];
export type OrgDeleteAnswer = components['schemas']['OrgDeleteAnswer'];
export type KeyCreateInput = components['schemas']['KeyCreateInput'];
export type KeyCreateAnswer = components['schemas']['KeyCreateAnswer'];
export type KeyListInput = components['schemas']['KeyListInput'];
export type KeyListAnswer = components['schemas']['KeyListAnswer'];
export type KeyRotateInput = components['schemas']['KeyRotateInput'];
export type KeyRotateAnswer = components['schemas']['KeyRotateAnswer'];
export type KeyRevokeInput = components['schemas']['KeyRevokeInput'];
export type KeyRevokeAnswer = components['schemas']['KeyRevokeAnswer'];
export type WebhookCreateInput = components['schemas']['WebhookCreateInput'];
export type WebhookCreateAnswer = components['schemas']['WebhookCreateAnswer'];
export type WebhookListInput = components['schemas']['WebhookListInput'];
export type WebhookListAnswer = components['schemas']['WebhookListAnswer'];
export type WebhookGetInput = components['schemas']['WebhookGetInput'];
export type WebhookGetAnswer = components['schemas']['WebhookGetAnswer'];
export type WebhookUpdateInput = components['schemas']['WebhookUpdateInput'];
export type WebhookUpdateAnswer = components['schemas']['WebhookUpdateAnswer'];
export type WebhookDeleteInput = components['schemas']['WebhookDeleteInput'];
export type WebhookDeleteAnswer = components['schemas']['WebhookDeleteAnswer'];
export type WebhookRotateInput = components['schemas']['WebhookRotateInput'];
export type WebhookRotateAnswer = components['schemas']['WebhookRotateAnswer'];
export type WebhookDeliveriesInput = components['schemas']['WebhookDeliveriesInput'];
export type WebhookDeliveriesAnswer = components['schemas']['WebhookDeliveriesAnswer'];
export type WebhookRedeliverInput = components['schemas']['WebhookRedeliverInput'];
export type WebhookRedeliverAnswer = components['schemas']['WebhookRedeliverAnswer'];
export type WebhookTestInput = components['schemas']['WebhookTestInput'];
export type WebhookTestAnswer = components['schemas']['WebhookTestAnswer'];
export type BillingGetInput = components['schemas']['BillingGetInput'];
export type BillingGetAnswer = components['schemas']['BillingGetAnswer'];
export type BillingCheckoutInput = components['schemas']['BillingCheckoutInput'];
export type BillingCheckoutAnswer = components['schemas']['BillingCheckoutAnswer'];
export type BillingPortalInput = components['schemas']['BillingPortalInput'];
export type BillingPortalAnswer = components['schemas']['BillingPortalAnswer'];
export type BillingSuccessInput = components['schemas']['BillingSuccessInput'];
export type BillingSuccessAnswer = components['schemas']['BillingSuccessAnswer'];
export type BillingKeyInput = components['schemas']['BillingKeyInput'];
export type BillingKeyAnswer = components['schemas']['BillingKeyAnswer'];
export type AccountGetInput = components['schemas']['AccountGetInput'];
export type AccountGetAnswer = components['schemas']['AccountGetAnswer'];
export type AccountUpdateInput = components['schemas']['AccountUpdateInput'];
export type AccountUpdateAnswer = components['schemas']['AccountUpdateAnswer'];
export type AccountDeleteInput = components['schemas']['AccountDeleteInput'];
export type AccountDeleteAnswer = components['schemas']['AccountDeleteAnswer'];
export type AccountExportInput = components['schemas']['AccountExportInput'];
export type AccountExportAnswer = components['schemas']['AccountExportAnswer'];
export type SessionListInput = components['schemas']['SessionListInput'];
export type SessionListAnswer = components['schemas']['SessionListAnswer'];
export type SessionEndInput = components['schemas']['SessionEndInput'];
export type SessionEndAnswer = components['schemas']['SessionEndAnswer'];
export type GrantListInput = components['schemas']['GrantListInput'];
export type GrantListAnswer = components['schemas']['GrantListAnswer'];
export type GrantCreateInput = components['schemas']['GrantCreateInput'];
export type GrantCreateAnswer = components['schemas']['GrantCreateAnswer'];
export type DeviceDecideInput = components['schemas']['DeviceDecideInput'];
export type DeviceDecideAnswer = components['schemas']['DeviceDecideAnswer'];
export type GrantEndInput = components['schemas']['GrantEndInput'];
export type GrantEndAnswer = components['schemas']['GrantEndAnswer'];
export type ApplicationListInput = components['schemas']['ApplicationListInput'];
export type ApplicationListAnswer = components['schemas']['ApplicationListAnswer'];
export type ApplicationEndInput = components['schemas']['ApplicationEndInput'];
export type ApplicationEndAnswer = components['schemas']['ApplicationEndAnswer'];
export type IdentityListInput = components['schemas']['IdentityListInput'];
export type IdentityListAnswer = components['schemas']['IdentityListAnswer'];
export type IdentityBeginInput = components['schemas']['IdentityBeginInput'];
export type IdentityBeginAnswer = components['schemas']['IdentityBeginAnswer'];
export type IdentityRemoveInput = components['schemas']['IdentityRemoveInput'];
export type IdentityRemoveAnswer = components['schemas']['IdentityRemoveAnswer'];
export type PasskeyListInput = components['schemas']['PasskeyListInput'];
export type PasskeyListAnswer = components['schemas']['PasskeyListAnswer'];
export type PasskeyAddInput = components['schemas']['PasskeyAddInput'];
export type PasskeyAddAnswer = components['schemas']['PasskeyAddAnswer'];
export type PasskeyOptionsInput = components['schemas']['PasskeyOptionsInput'];
export type PasskeyOptionsAnswer = components['schemas']['PasskeyOptionsAnswer'];
export type PasskeyRemoveInput = components['schemas']['PasskeyRemoveInput'];
export type PasskeyRemoveAnswer = components['schemas']['PasskeyRemoveAnswer'];
export type MemberListInput = components['schemas']['MemberListInput'];
export type MemberListAnswer = components['schemas']['MemberListAnswer'];
export type MemberUpdateInput = components['schemas']['MemberUpdateInput'];
export type MemberUpdateAnswer = components['schemas']['MemberUpdateAnswer'];
export type MemberRemoveInput = components['schemas']['MemberRemoveInput'];
export type MemberRemoveAnswer = components['schemas']['MemberRemoveAnswer'];
export type InvitationCreateInput = components['schemas']['InvitationCreateInput'];
export type InvitationCreateAnswer = components['schemas']['InvitationCreateAnswer'];
export type InvitationListInput = components['schemas']['InvitationListInput'];
export type InvitationListAnswer = components['schemas']['InvitationListAnswer'];
export type InvitationDeleteInput = components['schemas']['InvitationDeleteInput'];
export type InvitationDeleteAnswer = components['schemas']['InvitationDeleteAnswer'];
export type UsageInput = components['schemas']['UsageInput'];
export type UsageAnswer = components['schemas']['UsageAnswer'];
export type CreditListInput = components['schemas']['CreditListInput'];
export type CreditListAnswer = components['schemas']['CreditListAnswer'];
export type TopGetInput = components['schemas']['TopGetInput'];
export type TopGetAnswer = components['schemas']['TopGetAnswer'];
export type RoomCreateInput = components['schemas']['RoomCreateInput'];
export type RoomCreateAnswer = components['schemas']['RoomCreateAnswer'];
export type RoomListInput = components['schemas']['RoomListInput'];
export type RoomListAnswer = components['schemas']['RoomListAnswer'];
export type RoomGetInput = components['schemas']['RoomGetInput'];
export type RoomGetAnswer = components['schemas']['RoomGetAnswer'];
export type RoomUpdateInput = components['schemas']['RoomUpdateInput'];
export type RoomUpdateAnswer = components['schemas']['RoomUpdateAnswer'];
export type RoomDestroyInput = components['schemas']['RoomDestroyInput'];
export type RoomDestroyAnswer = components['schemas']['RoomDestroyAnswer'];
export type SandboxCreateInput = components['schemas']['SandboxCreateInput'];
export type SandboxCreateAnswer = components['schemas']['SandboxCreateAnswer'];
export type SandboxListInput = components['schemas']['SandboxListInput'];
export type SandboxListAnswer = components['schemas']['SandboxListAnswer'];
export type OrgSandboxListInput = components['schemas']['OrgSandboxListInput'];
export type OrgSandboxListAnswer = components['schemas']['OrgSandboxListAnswer'];
export type SandboxGetInput = components['schemas']['SandboxGetInput'];
export type SandboxGetAnswer = components['schemas']['SandboxGetAnswer'];
export type SandboxUpdateInput = components['schemas']['SandboxUpdateInput'];
export type SandboxUpdateAnswer = components['schemas']['SandboxUpdateAnswer'];
export type SandboxDestroyInput = components['schemas']['SandboxDestroyInput'];
export type SandboxDestroyAnswer = components['schemas']['SandboxDestroyAnswer'];
export type SandboxStandbyInput = components['schemas']['SandboxStandbyInput'];
export type SandboxStandbyAnswer = components['schemas']['SandboxStandbyAnswer'];
export type SandboxHibernateInput = components['schemas']['SandboxHibernateInput'];
export type SandboxHibernateAnswer = components['schemas']['SandboxHibernateAnswer'];
export type SandboxSnapshotInput = components['schemas']['SandboxSnapshotInput'];
export type SandboxSnapshotAnswer = components['schemas']['SandboxSnapshotAnswer'];
export type SandboxForkInput = components['schemas']['SandboxForkInput'];
export type SandboxForkAnswer = components['schemas']['SandboxForkAnswer'];
export type SandboxRollbackInput = components['schemas']['SandboxRollbackInput'];
export type SandboxRollbackAnswer = components['schemas']['SandboxRollbackAnswer'];
export type SnapshotListInput = components['schemas']['SnapshotListInput'];
export type SnapshotListAnswer = components['schemas']['SnapshotListAnswer'];
export type SnapshotGetInput = components['schemas']['SnapshotGetInput'];
export type SnapshotGetAnswer = components['schemas']['SnapshotGetAnswer'];
export type SnapshotDeleteInput = components['schemas']['SnapshotDeleteInput'];
export type SnapshotDeleteAnswer = components['schemas']['SnapshotDeleteAnswer'];
export type RoomCheckpointInput = components['schemas']['RoomCheckpointInput'];
export type RoomCheckpointAnswer = components['schemas']['RoomCheckpointAnswer'];
export type CheckpointListInput = components['schemas']['CheckpointListInput'];
export type CheckpointListAnswer = components['schemas']['CheckpointListAnswer'];
export type CheckpointGetInput = components['schemas']['CheckpointGetInput'];
export type CheckpointGetAnswer = components['schemas']['CheckpointGetAnswer'];
export type CheckpointDeleteInput = components['schemas']['CheckpointDeleteInput'];
export type CheckpointDeleteAnswer = components['schemas']['CheckpointDeleteAnswer'];
export type RoomForkInput = components['schemas']['RoomForkInput'];
export type RoomForkAnswer = components['schemas']['RoomForkAnswer'];
export type RoomRestoreInput = components['schemas']['RoomRestoreInput'];
export type RoomRestoreAnswer = components['schemas']['RoomRestoreAnswer'];
export type RoomMoveInput = components['schemas']['RoomMoveInput'];
export type RoomMoveAnswer = components['schemas']['RoomMoveAnswer'];
export type RoomBackupInput = components['schemas']['RoomBackupInput'];
export type RoomFromBackupInput = components['schemas']['RoomFromBackupInput'];
export type RoomFromBackupAnswer = components['schemas']['RoomFromBackupAnswer'];
export type SandboxResumeInput = components['schemas']['SandboxResumeInput'];
export type SandboxResumeAnswer = components['schemas']['SandboxResumeAnswer'];
export type SandboxLogsInput = components['schemas']['SandboxLogsInput'];
export type SandboxLogsAnswer = components['schemas']['SandboxLogsAnswer'];
export type SandboxMetricsInput = components['schemas']['SandboxMetricsInput'];
export type SandboxMetricsAnswer = components['schemas']['SandboxMetricsAnswer'];
export type EgressGetInput = components['schemas']['EgressGetInput'];
export type EgressGetAnswer = components['schemas']['EgressGetAnswer'];
export type EgressSetInput = components['schemas']['EgressSetInput'];
export type EgressSetAnswer = components['schemas']['EgressSetAnswer'];
export type EgressExplainInput = components['schemas']['EgressExplainInput'];
export type EgressExplainAnswer = components['schemas']['EgressExplainAnswer'];
export type SandboxNetworkInput = components['schemas']['SandboxNetworkInput'];
export type SandboxNetworkAnswer = components['schemas']['SandboxNetworkAnswer'];
export type SandboxExecInput = components['schemas']['SandboxExecInput'];
export type SandboxExecAnswer = components['schemas']['SandboxExecAnswer'];
export type SandboxFilePutInput = components['schemas']['SandboxFilePutInput'];
export type SandboxFilePutAnswer = components['schemas']['SandboxFilePutAnswer'];
export type SandboxFileGetInput = components['schemas']['SandboxFileGetInput'];
export type SandboxFileListInput = components['schemas']['SandboxFileListInput'];
export type SandboxFileListAnswer = components['schemas']['SandboxFileListAnswer'];
export type SandboxFileDeleteInput = components['schemas']['SandboxFileDeleteInput'];
export type SandboxFileDeleteAnswer = components['schemas']['SandboxFileDeleteAnswer'];
export type SandboxFileStatInput = components['schemas']['SandboxFileStatInput'];
export type SandboxFileStatAnswer = components['schemas']['SandboxFileStatAnswer'];
export type SandboxFileMkdirInput = components['schemas']['SandboxFileMkdirInput'];
export type SandboxFileMkdirAnswer = components['schemas']['SandboxFileMkdirAnswer'];
export type SandboxFileMoveInput = components['schemas']['SandboxFileMoveInput'];
export type SandboxFileMoveAnswer = components['schemas']['SandboxFileMoveAnswer'];
export type SandboxFileWatchInput = components['schemas']['SandboxFileWatchInput'];
export type SandboxFileWatchAnswer = components['schemas']['SandboxFileWatchAnswer'];
export type TerminalCreateInput = components['schemas']['TerminalCreateInput'];
export type TerminalCreateAnswer = components['schemas']['TerminalCreateAnswer'];
export type TerminalListInput = components['schemas']['TerminalListInput'];
export type TerminalListAnswer = components['schemas']['TerminalListAnswer'];
export type TerminalGetInput = components['schemas']['TerminalGetInput'];
export type TerminalGetAnswer = components['schemas']['TerminalGetAnswer'];
export type TerminalCloseInput = components['schemas']['TerminalCloseInput'];
export type TerminalCloseAnswer = components['schemas']['TerminalCloseAnswer'];
export type TerminalWatchInput = components['schemas']['TerminalWatchInput'];
export type TerminalWatchAnswer = components['schemas']['TerminalWatchAnswer'];
export type TerminalTokenInput = components['schemas']['TerminalTokenInput'];
export type TerminalTokenAnswer = components['schemas']['TerminalTokenAnswer'];
export type TerminalAttachInput = components['schemas']['TerminalAttachInput'];
export type ScreenGetInput = components['schemas']['ScreenGetInput'];
export type ComputerInput = components['schemas']['ComputerInput'];
export type ComputerAnswer = components['schemas']['ComputerAnswer'];
export type ScreenTicketInput = components['schemas']['ScreenTicketInput'];
export type ScreenTicketAnswer = components['schemas']['ScreenTicketAnswer'];
export type ScreenViewInput = components['schemas']['ScreenViewInput'];
export type RecordingStartInput = components['schemas']['RecordingStartInput'];
export type RecordingStartAnswer = components['schemas']['RecordingStartAnswer'];
export type RecordingListInput = components['schemas']['RecordingListInput'];
export type RecordingListAnswer = components['schemas']['RecordingListAnswer'];
export type RecordingGetInput = components['schemas']['RecordingGetInput'];
export type RecordingGetAnswer = components['schemas']['RecordingGetAnswer'];
export type RecordingDeleteInput = components['schemas']['RecordingDeleteInput'];
export type RecordingDeleteAnswer = components['schemas']['RecordingDeleteAnswer'];
export type RecordingStopInput = components['schemas']['RecordingStopInput'];
export type RecordingStopAnswer = components['schemas']['RecordingStopAnswer'];
export type RecordingDataInput = components['schemas']['RecordingDataInput'];
export type RecordingFilmInput = components['schemas']['RecordingFilmInput'];
export type SshAccessCreateInput = components['schemas']['SshAccessCreateInput'];
export type SshAccessCreateAnswer = components['schemas']['SshAccessCreateAnswer'];
export type SshAccessListInput = components['schemas']['SshAccessListInput'];
export type SshAccessListAnswer = components['schemas']['SshAccessListAnswer'];
export type SshAccessDeleteInput = components['schemas']['SshAccessDeleteInput'];
export type SshAccessDeleteAnswer = components['schemas']['SshAccessDeleteAnswer'];
export type SshKeyAddInput = components['schemas']['SshKeyAddInput'];
export type SshKeyAddAnswer = components['schemas']['SshKeyAddAnswer'];
export type SshKeyListInput = components['schemas']['SshKeyListInput'];
export type SshKeyListAnswer = components['schemas']['SshKeyListAnswer'];
export type SshKeyRemoveInput = components['schemas']['SshKeyRemoveInput'];
export type SshKeyRemoveAnswer = components['schemas']['SshKeyRemoveAnswer'];
export type SandboxExposePortInput = components['schemas']['SandboxExposePortInput'];
export type SandboxExposePortAnswer = components['schemas']['SandboxExposePortAnswer'];
export type PortListInput = components['schemas']['PortListInput'];
export type PortListAnswer = components['schemas']['PortListAnswer'];
export type SandboxUnexposePortInput = components['schemas']['SandboxUnexposePortInput'];
export type SandboxUnexposePortAnswer = components['schemas']['SandboxUnexposePortAnswer'];
export type BrowserGetInput = components['schemas']['BrowserGetInput'];
export type BrowserGetAnswer = components['schemas']['BrowserGetAnswer'];
export type ExecutionStartInput = components['schemas']['ExecutionStartInput'];
export type ExecutionStartAnswer = components['schemas']['ExecutionStartAnswer'];
export type ExecutionListInput = components['schemas']['ExecutionListInput'];
export type ExecutionListAnswer = components['schemas']['ExecutionListAnswer'];
export type ExecutionGetInput = components['schemas']['ExecutionGetInput'];
export type ExecutionGetAnswer = components['schemas']['ExecutionGetAnswer'];
export type ExecutionEndInput = components['schemas']['ExecutionEndInput'];
export type ExecutionEndAnswer = components['schemas']['ExecutionEndAnswer'];
export type ExecutionStreamInput = components['schemas']['ExecutionStreamInput'];
export type ExecutionStreamAnswer = components['schemas']['ExecutionStreamAnswer'];
export type ExecutionStdinInput = components['schemas']['ExecutionStdinInput'];
export type ExecutionStdinAnswer = components['schemas']['ExecutionStdinAnswer'];
export type ExecutionSignalInput = components['schemas']['ExecutionSignalInput'];
export type ExecutionSignalAnswer = components['schemas']['ExecutionSignalAnswer'];
export type FsWriteInput = components['schemas']['FsWriteInput'];
export type FsWriteAnswer = components['schemas']['FsWriteAnswer'];
export type FsListInput = components['schemas']['FsListInput'];
export type FsListAnswer = components['schemas']['FsListAnswer'];
export type FsReadInput = components['schemas']['FsReadInput'];
export type FsReadAnswer = components['schemas']['FsReadAnswer'];
export type FsStatInput = components['schemas']['FsStatInput'];
export type FsStatAnswer = components['schemas']['FsStatAnswer'];
export type FsMkdirInput = components['schemas']['FsMkdirInput'];
export type FsMkdirAnswer = components['schemas']['FsMkdirAnswer'];
export type FsMoveInput = components['schemas']['FsMoveInput'];
export type FsMoveAnswer = components['schemas']['FsMoveAnswer'];
export type FsDeleteInput = components['schemas']['FsDeleteInput'];
export type FsDeleteAnswer = components['schemas']['FsDeleteAnswer'];
export type FilePutInput = components['schemas']['FilePutInput'];
export type FilePutAnswer = components['schemas']['FilePutAnswer'];
export type FileGetInput = components['schemas']['FileGetInput'];
export type AgentSendInput = components['schemas']['AgentSendInput'];
export type AgentSendAnswer = components['schemas']['AgentSendAnswer'];
export type AgentWaitInput = components['schemas']['AgentWaitInput'];
export type AgentWaitAnswer = components['schemas']['AgentWaitAnswer'];
export type MessageSendManyInput = components['schemas']['MessageSendManyInput'];
export type MessageSendManyAnswer = components['schemas']['MessageSendManyAnswer'];
export type MessageGetInput = components['schemas']['MessageGetInput'];
export type MessageGetAnswer = components['schemas']['MessageGetAnswer'];
export type MessageAckInput = components['schemas']['MessageAckInput'];
export type MessageAckAnswer = components['schemas']['MessageAckAnswer'];
export type MessageReplyInput = components['schemas']['MessageReplyInput'];
export type MessageReplyAnswer = components['schemas']['MessageReplyAnswer'];
export type AgentSubscribeInput = components['schemas']['AgentSubscribeInput'];
export type AgentSubscribeAnswer = components['schemas']['AgentSubscribeAnswer'];
export type AgentListInput = components['schemas']['AgentListInput'];
export type AgentListAnswer = components['schemas']['AgentListAnswer'];
export type BarrierArriveInput = components['schemas']['BarrierArriveInput'];
export type BarrierArriveAnswer = components['schemas']['BarrierArriveAnswer'];
export type BarrierListInput = components['schemas']['BarrierListInput'];
export type BarrierListAnswer = components['schemas']['BarrierListAnswer'];
export type BarrierGetInput = components['schemas']['BarrierGetInput'];
export type BarrierGetAnswer = components['schemas']['BarrierGetAnswer'];
export type BarrierCancelInput = components['schemas']['BarrierCancelInput'];
export type BarrierCancelAnswer = components['schemas']['BarrierCancelAnswer'];
export type RoomOverviewInput = components['schemas']['RoomOverviewInput'];
export type RoomOverviewAnswer = components['schemas']['RoomOverviewAnswer'];
export type RoomWaitsInput = components['schemas']['RoomWaitsInput'];
export type RoomWaitsAnswer = components['schemas']['RoomWaitsAnswer'];
export type RoomTimelineInput = components['schemas']['RoomTimelineInput'];
export type RoomTimelineAnswer = components['schemas']['RoomTimelineAnswer'];
export type RoomNowInput = components['schemas']['RoomNowInput'];
export type RoomNowAnswer = components['schemas']['RoomNowAnswer'];
export type LiveSocketInput = components['schemas']['LiveSocketInput'];
export type TemplateListInput = components['schemas']['TemplateListInput'];
export type TemplateListAnswer = components['schemas']['TemplateListAnswer'];
export type TemplateCreateInput = components['schemas']['TemplateCreateInput'];
export type TemplateCreateAnswer = components['schemas']['TemplateCreateAnswer'];
export type TemplateGetInput = components['schemas']['TemplateGetInput'];
export type TemplateGetAnswer = components['schemas']['TemplateGetAnswer'];
export type TemplateRemoveInput = components['schemas']['TemplateRemoveInput'];
export type TemplateRemoveAnswer = components['schemas']['TemplateRemoveAnswer'];
export type TemplateBuildGetInput = components['schemas']['TemplateBuildGetInput'];
export type TemplateBuildGetAnswer = components['schemas']['TemplateBuildGetAnswer'];
export type TemplateBuildEndInput = components['schemas']['TemplateBuildEndInput'];
export type TemplateBuildEndAnswer = components['schemas']['TemplateBuildEndAnswer'];
export type TemplateBuildStreamInput = components['schemas']['TemplateBuildStreamInput'];
export type TemplateBuildStreamAnswer = components['schemas']['TemplateBuildStreamAnswer'];
export type AuditListInput = components['schemas']['AuditListInput'];
export type AuditListAnswer = components['schemas']['AuditListAnswer'];
export type OrgAuditListInput = components['schemas']['OrgAuditListInput'];
export type OrgAuditListAnswer = components['schemas']['OrgAuditListAnswer'];
export type AuditSummaryInput = components['schemas']['AuditSummaryInput'];
export type AuditSummaryAnswer = components['schemas']['AuditSummaryAnswer'];
export type OrgAuditSummaryInput = components['schemas']['OrgAuditSummaryInput'];
export type OrgAuditSummaryAnswer = components['schemas']['OrgAuditSummaryAnswer'];
export type AuditVerifyInput = components['schemas']['AuditVerifyInput'];
export type AuditVerifyAnswer = components['schemas']['AuditVerifyAnswer'];
export type OrgAuditVerifyInput = components['schemas']['OrgAuditVerifyInput'];
export type OrgAuditVerifyAnswer = components['schemas']['OrgAuditVerifyAnswer'];
export type RoomEventsInput = components['schemas']['RoomEventsInput'];
export type RoomEventsAnswer = components['schemas']['RoomEventsAnswer'];
export type OrgEventsInput = components['schemas']['OrgEventsInput'];
export type OrgEventsAnswer = components['schemas']['OrgEventsAnswer'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
