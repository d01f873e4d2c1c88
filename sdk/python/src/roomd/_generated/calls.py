"""Parameters and result of a call of each operation. Made by generate.ts from the OpenAPI document: change that instead."""

from collections.abc import Coroutine
from typing import Any, Literal, Protocol, Unpack, overload

from ..transport import CallOptions
from . import schemas as s


class Call(Protocol):
    """Calls an operation by its name."""

    @overload
    def __call__(self, name: Literal["health"], options: CallOptions | None = None, /, **input: Unpack[s.HealthInput]) -> s.HealthAnswer:
        """Whether the service is ready."""

    @overload
    def __call__(self, name: Literal["metrics"], options: CallOptions | None = None, /, **input: Unpack[s.MetricsInput]) -> str:
        """Figures of the host and the service for Prometheus."""

    @overload
    def __call__(self, name: Literal["config_get"], options: CallOptions | None = None, /, **input: Unpack[s.ConfigGetInput]) -> s.ConfigGetAnswer:
        """Show limits, defaults and guarantees."""

    @overload
    def __call__(self, name: Literal["me_get"], options: CallOptions | None = None, /, **input: Unpack[s.MeGetInput]) -> s.MeGetAnswer:
        """Get the caller's API key."""

    @overload
    def __call__(self, name: Literal["locate"], options: CallOptions | None = None, /, **input: Unpack[s.LocateInput]) -> s.LocateAnswer:
        """Find the resource with an id."""

    @overload
    def __call__(self, name: Literal["host_list"], options: CallOptions | None = None, /, **input: Unpack[s.HostListInput]) -> s.HostListAnswer:
        """List the hosts of the service."""

    @overload
    def __call__(self, name: Literal["host_evacuate"], options: CallOptions | None = None, /, **input: Unpack[s.HostEvacuateInput]) -> s.HostEvacuateAnswer:
        """Move one room of a host to another host."""

    @overload
    def __call__(self, name: Literal["openapi_get"], options: CallOptions | None = None, /, **input: Unpack[s.OpenapiGetInput]) -> s.OpenapiGetAnswer:
        """This interface as OpenAPI 3.1."""

    @overload
    def __call__(self, name: Literal["org_create"], options: CallOptions | None = None, /, **input: Unpack[s.OrgCreateInput]) -> s.OrgCreateAnswer:
        """Create an organization."""

    @overload
    def __call__(self, name: Literal["org_delete"], options: CallOptions | None = None, /, **input: Unpack[s.OrgDeleteInput]) -> s.OrgDeleteAnswer:
        """End an organization."""

    @overload
    def __call__(self, name: Literal["key_create"], options: CallOptions | None = None, /, **input: Unpack[s.KeyCreateInput]) -> s.KeyCreateAnswer:
        """Create an API key."""

    @overload
    def __call__(self, name: Literal["key_list"], options: CallOptions | None = None, /, **input: Unpack[s.KeyListInput]) -> s.KeyListAnswer:
        """List the organization's API keys."""

    @overload
    def __call__(self, name: Literal["key_rotate"], options: CallOptions | None = None, /, **input: Unpack[s.KeyRotateInput]) -> s.KeyRotateAnswer:
        """Replace an API key."""

    @overload
    def __call__(self, name: Literal["key_revoke"], options: CallOptions | None = None, /, **input: Unpack[s.KeyRevokeInput]) -> s.KeyRevokeAnswer:
        """Revoke an API key."""

    @overload
    def __call__(self, name: Literal["webhook_create"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookCreateInput]) -> s.WebhookCreateAnswer:
        """Create a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_list"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookListInput]) -> s.WebhookListAnswer:
        """List the organization's webhooks."""

    @overload
    def __call__(self, name: Literal["webhook_get"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookGetInput]) -> s.WebhookGetAnswer:
        """Get a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_update"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookUpdateInput]) -> s.WebhookUpdateAnswer:
        """Change a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_delete"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookDeleteInput]) -> s.WebhookDeleteAnswer:
        """Delete a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_rotate"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookRotateInput]) -> s.WebhookRotateAnswer:
        """Replace a webhook's secret."""

    @overload
    def __call__(self, name: Literal["webhook_deliveries"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookDeliveriesInput]) -> s.WebhookDeliveriesAnswer:
        """List a webhook's failed and retried deliveries."""

    @overload
    def __call__(self, name: Literal["webhook_redeliver"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookRedeliverInput]) -> s.WebhookRedeliverAnswer:
        """Send an event again."""

    @overload
    def __call__(self, name: Literal["webhook_test"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookTestInput]) -> s.WebhookTestAnswer:
        """Send a test event."""

    @overload
    def __call__(self, name: Literal["billing_get"], options: CallOptions | None = None, /, **input: Unpack[s.BillingGetInput]) -> s.BillingGetAnswer:
        """Show the organization's plan and subscription."""

    @overload
    def __call__(self, name: Literal["billing_checkout"], options: CallOptions | None = None, /, **input: Unpack[s.BillingCheckoutInput]) -> s.BillingCheckoutAnswer:
        """Start a checkout for plan starter."""

    @overload
    def __call__(self, name: Literal["billing_portal"], options: CallOptions | None = None, /, **input: Unpack[s.BillingPortalInput]) -> s.BillingPortalAnswer:
        """Open cards, invoices and cancellation of a subscription."""

    @overload
    def __call__(self, name: Literal["billing_success"], options: CallOptions | None = None, /, **input: Unpack[s.BillingSuccessInput]) -> s.BillingSuccessAnswer:
        """Show the result of a checkout."""

    @overload
    def __call__(self, name: Literal["billing_key"], options: CallOptions | None = None, /, **input: Unpack[s.BillingKeyInput]) -> s.BillingKeyAnswer:
        """Create the key that comes with a checkout."""

    @overload
    def __call__(self, name: Literal["account_get"], options: CallOptions | None = None, /, **input: Unpack[s.AccountGetInput]) -> s.AccountGetAnswer:
        """Show the signed-in person."""

    @overload
    def __call__(self, name: Literal["account_update"], options: CallOptions | None = None, /, **input: Unpack[s.AccountUpdateInput]) -> s.AccountUpdateAnswer:
        """Change one's name, or the session's organization."""

    @overload
    def __call__(self, name: Literal["account_delete"], options: CallOptions | None = None, /, **input: Unpack[s.AccountDeleteInput]) -> s.AccountDeleteAnswer:
        """Delete one's account."""

    @overload
    def __call__(self, name: Literal["account_export"], options: CallOptions | None = None, /, **input: Unpack[s.AccountExportInput]) -> s.AccountExportAnswer:
        """Show all data stored about oneself."""

    @overload
    def __call__(self, name: Literal["session_list"], options: CallOptions | None = None, /, **input: Unpack[s.SessionListInput]) -> s.SessionListAnswer:
        """List one's sessions."""

    @overload
    def __call__(self, name: Literal["session_end"], options: CallOptions | None = None, /, **input: Unpack[s.SessionEndInput]) -> s.SessionEndAnswer:
        """End a session."""

    @overload
    def __call__(self, name: Literal["grant_list"], options: CallOptions | None = None, /, **input: Unpack[s.GrantListInput]) -> s.GrantListAnswer:
        """List the applications that one has authorized."""

    @overload
    def __call__(self, name: Literal["grant_create"], options: CallOptions | None = None, /, **input: Unpack[s.GrantCreateInput]) -> s.GrantCreateAnswer:
        """Authorize an application at /authorize."""

    @overload
    def __call__(self, name: Literal["device_decide"], options: CallOptions | None = None, /, **input: Unpack[s.DeviceDecideInput]) -> s.DeviceDecideAnswer:
        """Approve or reject an application that shows a code."""

    @overload
    def __call__(self, name: Literal["grant_end"], options: CallOptions | None = None, /, **input: Unpack[s.GrantEndInput]) -> s.GrantEndAnswer:
        """Revoke an application's access."""

    @overload
    def __call__(self, name: Literal["application_list"], options: CallOptions | None = None, /, **input: Unpack[s.ApplicationListInput]) -> s.ApplicationListAnswer:
        """List the applications that members have authorized."""

    @overload
    def __call__(self, name: Literal["application_end"], options: CallOptions | None = None, /, **input: Unpack[s.ApplicationEndInput]) -> s.ApplicationEndAnswer:
        """Revoke the access of a member's application."""

    @overload
    def __call__(self, name: Literal["identity_list"], options: CallOptions | None = None, /, **input: Unpack[s.IdentityListInput]) -> s.IdentityListAnswer:
        """List one's external accounts."""

    @overload
    def __call__(self, name: Literal["identity_begin"], options: CallOptions | None = None, /, **input: Unpack[s.IdentityBeginInput]) -> s.IdentityBeginAnswer:
        """Start linking an external account."""

    @overload
    def __call__(self, name: Literal["identity_remove"], options: CallOptions | None = None, /, **input: Unpack[s.IdentityRemoveInput]) -> s.IdentityRemoveAnswer:
        """Unlink an external account."""

    @overload
    def __call__(self, name: Literal["passkey_list"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyListInput]) -> s.PasskeyListAnswer:
        """List one's passkeys."""

    @overload
    def __call__(self, name: Literal["passkey_add"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyAddInput]) -> s.PasskeyAddAnswer:
        """Add a passkey."""

    @overload
    def __call__(self, name: Literal["passkey_options"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyOptionsInput]) -> s.PasskeyOptionsAnswer:
        """Start creating a passkey."""

    @overload
    def __call__(self, name: Literal["passkey_remove"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyRemoveInput]) -> s.PasskeyRemoveAnswer:
        """Remove a passkey."""

    @overload
    def __call__(self, name: Literal["member_list"], options: CallOptions | None = None, /, **input: Unpack[s.MemberListInput]) -> s.MemberListAnswer:
        """List the organization's members."""

    @overload
    def __call__(self, name: Literal["member_update"], options: CallOptions | None = None, /, **input: Unpack[s.MemberUpdateInput]) -> s.MemberUpdateAnswer:
        """Change a member's role."""

    @overload
    def __call__(self, name: Literal["member_remove"], options: CallOptions | None = None, /, **input: Unpack[s.MemberRemoveInput]) -> s.MemberRemoveAnswer:
        """Remove a member."""

    @overload
    def __call__(self, name: Literal["invitation_create"], options: CallOptions | None = None, /, **input: Unpack[s.InvitationCreateInput]) -> s.InvitationCreateAnswer:
        """Invite a person."""

    @overload
    def __call__(self, name: Literal["invitation_list"], options: CallOptions | None = None, /, **input: Unpack[s.InvitationListInput]) -> s.InvitationListAnswer:
        """List the pending invitations."""

    @overload
    def __call__(self, name: Literal["invitation_delete"], options: CallOptions | None = None, /, **input: Unpack[s.InvitationDeleteInput]) -> s.InvitationDeleteAnswer:
        """Withdraw an invitation."""

    @overload
    def __call__(self, name: Literal["usage"], options: CallOptions | None = None, /, **input: Unpack[s.UsageInput]) -> s.UsageAnswer:
        """Show the organization's usage."""

    @overload
    def __call__(self, name: Literal["credit_list"], options: CallOptions | None = None, /, **input: Unpack[s.CreditListInput]) -> s.CreditListAnswer:
        """List credits granted and spent."""

    @overload
    def __call__(self, name: Literal["top_get"], options: CallOptions | None = None, /, **input: Unpack[s.TopGetInput]) -> s.TopGetAnswer:
        """Show the current resource usage of sandboxes."""

    @overload
    def __call__(self, name: Literal["room_create"], options: CallOptions | None = None, /, **input: Unpack[s.RoomCreateInput]) -> s.RoomCreateAnswer:
        """Create a room."""

    @overload
    def __call__(self, name: Literal["room_list"], options: CallOptions | None = None, /, **input: Unpack[s.RoomListInput]) -> s.RoomListAnswer:
        """List rooms."""

    @overload
    def __call__(self, name: Literal["room_get"], options: CallOptions | None = None, /, **input: Unpack[s.RoomGetInput]) -> s.RoomGetAnswer:
        """Get a room."""

    @overload
    def __call__(self, name: Literal["room_update"], options: CallOptions | None = None, /, **input: Unpack[s.RoomUpdateInput]) -> s.RoomUpdateAnswer:
        """Change a room's labels and end."""

    @overload
    def __call__(self, name: Literal["room_destroy"], options: CallOptions | None = None, /, **input: Unpack[s.RoomDestroyInput]) -> s.RoomDestroyAnswer:
        """Destroy a room."""

    @overload
    def __call__(self, name: Literal["sandbox_create"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxCreateInput]) -> s.SandboxCreateAnswer:
        """Create a sandbox from a template."""

    @overload
    def __call__(self, name: Literal["sandbox_list"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxListInput]) -> s.SandboxListAnswer:
        """List a room's sandboxes."""

    @overload
    def __call__(self, name: Literal["org_sandbox_list"], options: CallOptions | None = None, /, **input: Unpack[s.OrgSandboxListInput]) -> s.OrgSandboxListAnswer:
        """List sandboxes of all rooms."""

    @overload
    def __call__(self, name: Literal["sandbox_get"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxGetInput]) -> s.SandboxGetAnswer:
        """Get a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_update"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxUpdateInput]) -> s.SandboxUpdateAnswer:
        """Change a sandbox's labels and timeouts."""

    @overload
    def __call__(self, name: Literal["sandbox_destroy"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxDestroyInput]) -> s.SandboxDestroyAnswer:
        """Destroy a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_standby"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxStandbyInput]) -> s.SandboxStandbyAnswer:
        """Pause a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_hibernate"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxHibernateInput]) -> s.SandboxHibernateAnswer:
        """Hibernate a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_snapshot"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxSnapshotInput]) -> s.SandboxSnapshotAnswer:
        """Take a snapshot of a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_fork"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxForkInput]) -> s.SandboxForkAnswer:
        """Fork a running sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_rollback"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxRollbackInput]) -> s.SandboxRollbackAnswer:
        """Roll back a sandbox to a snapshot."""

    @overload
    def __call__(self, name: Literal["snapshot_list"], options: CallOptions | None = None, /, **input: Unpack[s.SnapshotListInput]) -> s.SnapshotListAnswer:
        """List a room's snapshots."""

    @overload
    def __call__(self, name: Literal["snapshot_get"], options: CallOptions | None = None, /, **input: Unpack[s.SnapshotGetInput]) -> s.SnapshotGetAnswer:
        """Get a snapshot."""

    @overload
    def __call__(self, name: Literal["snapshot_delete"], options: CallOptions | None = None, /, **input: Unpack[s.SnapshotDeleteInput]) -> s.SnapshotDeleteAnswer:
        """Delete a snapshot."""

    @overload
    def __call__(self, name: Literal["room_checkpoint"], options: CallOptions | None = None, /, **input: Unpack[s.RoomCheckpointInput]) -> s.RoomCheckpointAnswer:
        """Take a checkpoint of a room."""

    @overload
    def __call__(self, name: Literal["checkpoint_list"], options: CallOptions | None = None, /, **input: Unpack[s.CheckpointListInput]) -> s.CheckpointListAnswer:
        """List a room's checkpoints."""

    @overload
    def __call__(self, name: Literal["checkpoint_get"], options: CallOptions | None = None, /, **input: Unpack[s.CheckpointGetInput]) -> s.CheckpointGetAnswer:
        """Get a checkpoint."""

    @overload
    def __call__(self, name: Literal["checkpoint_delete"], options: CallOptions | None = None, /, **input: Unpack[s.CheckpointDeleteInput]) -> s.CheckpointDeleteAnswer:
        """Delete a checkpoint."""

    @overload
    def __call__(self, name: Literal["room_fork"], options: CallOptions | None = None, /, **input: Unpack[s.RoomForkInput]) -> s.RoomForkAnswer:
        """Fork a room."""

    @overload
    def __call__(self, name: Literal["room_restore"], options: CallOptions | None = None, /, **input: Unpack[s.RoomRestoreInput]) -> s.RoomRestoreAnswer:
        """Restore a room from a checkpoint."""

    @overload
    def __call__(self, name: Literal["room_move"], options: CallOptions | None = None, /, **input: Unpack[s.RoomMoveInput]) -> s.RoomMoveAnswer:
        """Move a room to another host."""

    @overload
    def __call__(self, name: Literal["room_from_backup"], options: CallOptions | None = None, /, **input: Unpack[s.RoomFromBackupInput]) -> s.RoomFromBackupAnswer:
        """Create a room from a backup."""

    @overload
    def __call__(self, name: Literal["sandbox_resume"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxResumeInput]) -> s.SandboxResumeAnswer:
        """Resume a sandbox in standby or hibernation."""

    @overload
    def __call__(self, name: Literal["sandbox_logs"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxLogsInput]) -> s.SandboxLogsAnswer:
        """Read a sandbox's console or agent log."""

    @overload
    def __call__(self, name: Literal["sandbox_metrics"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxMetricsInput]) -> s.SandboxMetricsAnswer:
        """Measure a sandbox."""

    @overload
    def __call__(self, name: Literal["egress_get"], options: CallOptions | None = None, /, **input: Unpack[s.EgressGetInput]) -> s.EgressGetAnswer:
        """Get a sandbox's egress list and its traffic."""

    @overload
    def __call__(self, name: Literal["egress_set"], options: CallOptions | None = None, /, **input: Unpack[s.EgressSetInput]) -> s.EgressSetAnswer:
        """Change the destinations that a sandbox may connect to."""

    @overload
    def __call__(self, name: Literal["egress_explain"], options: CallOptions | None = None, /, **input: Unpack[s.EgressExplainInput]) -> s.EgressExplainAnswer:
        """Check whether a sandbox may connect to a host, and why."""

    @overload
    def __call__(self, name: Literal["sandbox_network"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxNetworkInput]) -> s.SandboxNetworkAnswer:
        """Show a sandbox's connections, allowed and refused."""

    @overload
    def __call__(self, name: Literal["sandbox_exec"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxExecInput]) -> s.SandboxExecAnswer:
        """Run a command and wait for it."""

    @overload
    def __call__(self, name: Literal["sandbox_file_put"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFilePutInput]) -> s.SandboxFilePutAnswer:
        """Stream a file into a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_file_list"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileListInput]) -> s.SandboxFileListAnswer:
        """List a directory of a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_file_delete"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileDeleteInput]) -> s.SandboxFileDeleteAnswer:
        """Delete an entry of a sandbox's file system."""

    @overload
    def __call__(self, name: Literal["sandbox_file_stat"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileStatInput]) -> s.SandboxFileStatAnswer:
        """Describe one entry of a sandbox's file system."""

    @overload
    def __call__(self, name: Literal["sandbox_file_mkdir"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileMkdirInput]) -> s.SandboxFileMkdirAnswer:
        """Make a directory in a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_file_move"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileMoveInput]) -> s.SandboxFileMoveAnswer:
        """Move an entry of a sandbox's file system."""

    @overload
    def __call__(self, name: Literal["terminal_create"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalCreateInput]) -> s.TerminalCreateAnswer:
        """Open a terminal."""

    @overload
    def __call__(self, name: Literal["terminal_list"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalListInput]) -> s.TerminalListAnswer:
        """List a sandbox's terminals."""

    @overload
    def __call__(self, name: Literal["terminal_get"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalGetInput]) -> s.TerminalGetAnswer:
        """Get a terminal."""

    @overload
    def __call__(self, name: Literal["terminal_close"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalCloseInput]) -> s.TerminalCloseAnswer:
        """End a terminal."""

    @overload
    def __call__(self, name: Literal["terminal_token"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalTokenInput]) -> s.TerminalTokenAnswer:
        """Make another token for a terminal."""

    @overload
    def __call__(self, name: Literal["computer"], options: CallOptions | None = None, /, **input: Unpack[s.ComputerInput]) -> s.ComputerAnswer:
        """Use a sandbox's screen, keyboard and mouse."""

    @overload
    def __call__(self, name: Literal["screen_ticket"], options: CallOptions | None = None, /, **input: Unpack[s.ScreenTicketInput]) -> s.ScreenTicketAnswer:
        """Create a ticket for a sandbox's screen."""

    @overload
    def __call__(self, name: Literal["recording_start"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingStartInput]) -> s.RecordingStartAnswer:
        """Start recording a sandbox's screen."""

    @overload
    def __call__(self, name: Literal["recording_list"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingListInput]) -> s.RecordingListAnswer:
        """List the recordings of a sandbox's screen."""

    @overload
    def __call__(self, name: Literal["recording_get"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingGetInput]) -> s.RecordingGetAnswer:
        """Get one recording's record."""

    @overload
    def __call__(self, name: Literal["recording_delete"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingDeleteInput]) -> s.RecordingDeleteAnswer:
        """Delete a recording."""

    @overload
    def __call__(self, name: Literal["recording_stop"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingStopInput]) -> s.RecordingStopAnswer:
        """Stop recording."""

    @overload
    def __call__(self, name: Literal["ssh_access_create"], options: CallOptions | None = None, /, **input: Unpack[s.SshAccessCreateInput]) -> s.SshAccessCreateAnswer:
        """Make a short-lived password for SSH."""

    @overload
    def __call__(self, name: Literal["ssh_access_list"], options: CallOptions | None = None, /, **input: Unpack[s.SshAccessListInput]) -> s.SshAccessListAnswer:
        """List the short-lived passwords of a sandbox."""

    @overload
    def __call__(self, name: Literal["ssh_access_delete"], options: CallOptions | None = None, /, **input: Unpack[s.SshAccessDeleteInput]) -> s.SshAccessDeleteAnswer:
        """Revoke a short-lived password."""

    @overload
    def __call__(self, name: Literal["ssh_key_add"], options: CallOptions | None = None, /, **input: Unpack[s.SshKeyAddInput]) -> s.SshKeyAddAnswer:
        """Register a public key for SSH."""

    @overload
    def __call__(self, name: Literal["ssh_key_list"], options: CallOptions | None = None, /, **input: Unpack[s.SshKeyListInput]) -> s.SshKeyListAnswer:
        """List the organization's public keys for SSH."""

    @overload
    def __call__(self, name: Literal["ssh_key_remove"], options: CallOptions | None = None, /, **input: Unpack[s.SshKeyRemoveInput]) -> s.SshKeyRemoveAnswer:
        """Remove a public key."""

    @overload
    def __call__(self, name: Literal["sandbox_expose_port"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxExposePortInput]) -> s.SandboxExposePortAnswer:
        """Expose a port of a sandbox."""

    @overload
    def __call__(self, name: Literal["port_list"], options: CallOptions | None = None, /, **input: Unpack[s.PortListInput]) -> s.PortListAnswer:
        """List a sandbox's exposed ports."""

    @overload
    def __call__(self, name: Literal["sandbox_unexpose_port"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxUnexposePortInput]) -> s.SandboxUnexposePortAnswer:
        """Unexpose a port of a sandbox."""

    @overload
    def __call__(self, name: Literal["browser_get"], options: CallOptions | None = None, /, **input: Unpack[s.BrowserGetInput]) -> s.BrowserGetAnswer:
        """Get the URL of a sandbox's browser, for Playwright and Puppeteer."""

    @overload
    def __call__(self, name: Literal["execution_start"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionStartInput]) -> s.ExecutionStartAnswer:
        """Start a command and leave it running."""

    @overload
    def __call__(self, name: Literal["execution_list"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionListInput]) -> s.ExecutionListAnswer:
        """List a sandbox's executions."""

    @overload
    def __call__(self, name: Literal["execution_get"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionGetInput]) -> s.ExecutionGetAnswer:
        """Get an execution."""

    @overload
    def __call__(self, name: Literal["execution_end"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionEndInput]) -> s.ExecutionEndAnswer:
        """End an execution."""

    @overload
    def __call__(self, name: Literal["execution_stdin"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionStdinInput]) -> s.ExecutionStdinAnswer:
        """Write to an execution's standard input."""

    @overload
    def __call__(self, name: Literal["execution_signal"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionSignalInput]) -> s.ExecutionSignalAnswer:
        """Send an execution a signal."""

    @overload
    def __call__(self, name: Literal["fs_write"], options: CallOptions | None = None, /, **input: Unpack[s.FsWriteInput]) -> s.FsWriteAnswer:
        """Write a file on the drive."""

    @overload
    def __call__(self, name: Literal["fs_list"], options: CallOptions | None = None, /, **input: Unpack[s.FsListInput]) -> s.FsListAnswer:
        """List the drive."""

    @overload
    def __call__(self, name: Literal["fs_read"], options: CallOptions | None = None, /, **input: Unpack[s.FsReadInput]) -> s.FsReadAnswer:
        """Read a file of the drive."""

    @overload
    def __call__(self, name: Literal["fs_stat"], options: CallOptions | None = None, /, **input: Unpack[s.FsStatInput]) -> s.FsStatAnswer:
        """Describe one entry of the drive."""

    @overload
    def __call__(self, name: Literal["fs_mkdir"], options: CallOptions | None = None, /, **input: Unpack[s.FsMkdirInput]) -> s.FsMkdirAnswer:
        """Make a directory on the drive."""

    @overload
    def __call__(self, name: Literal["fs_move"], options: CallOptions | None = None, /, **input: Unpack[s.FsMoveInput]) -> s.FsMoveAnswer:
        """Move an entry of the drive."""

    @overload
    def __call__(self, name: Literal["fs_delete"], options: CallOptions | None = None, /, **input: Unpack[s.FsDeleteInput]) -> s.FsDeleteAnswer:
        """Delete an entry of the drive."""

    @overload
    def __call__(self, name: Literal["file_put"], options: CallOptions | None = None, /, **input: Unpack[s.FilePutInput]) -> s.FilePutAnswer:
        """Stream a file onto the drive."""

    @overload
    def __call__(self, name: Literal["agent_send"], options: CallOptions | None = None, /, **input: Unpack[s.AgentSendInput]) -> s.AgentSendAnswer:
        """Send a message."""

    @overload
    def __call__(self, name: Literal["agent_wait"], options: CallOptions | None = None, /, **input: Unpack[s.AgentWaitInput]) -> s.AgentWaitAnswer:
        """Read an inbox, or the room's messages."""

    @overload
    def __call__(self, name: Literal["message_send_many"], options: CallOptions | None = None, /, **input: Unpack[s.MessageSendManyInput]) -> s.MessageSendManyAnswer:
        """Send many messages."""

    @overload
    def __call__(self, name: Literal["message_get"], options: CallOptions | None = None, /, **input: Unpack[s.MessageGetInput]) -> s.MessageGetAnswer:
        """Get a message and its delivery state."""

    @overload
    def __call__(self, name: Literal["message_ack"], options: CallOptions | None = None, /, **input: Unpack[s.MessageAckInput]) -> s.MessageAckAnswer:
        """Acknowledge a message."""

    @overload
    def __call__(self, name: Literal["message_reply"], options: CallOptions | None = None, /, **input: Unpack[s.MessageReplyInput]) -> s.MessageReplyAnswer:
        """Reply to a message."""

    @overload
    def __call__(self, name: Literal["agent_subscribe"], options: CallOptions | None = None, /, **input: Unpack[s.AgentSubscribeInput]) -> s.AgentSubscribeAnswer:
        """Set the topics that an agent subscribes to."""

    @overload
    def __call__(self, name: Literal["agent_list"], options: CallOptions | None = None, /, **input: Unpack[s.AgentListInput]) -> s.AgentListAnswer:
        """List the agents of a room."""

    @overload
    def __call__(self, name: Literal["barrier_arrive"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierArriveInput]) -> s.BarrierArriveAnswer:
        """Arrive at a barrier, and wait until all have."""

    @overload
    def __call__(self, name: Literal["barrier_list"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierListInput]) -> s.BarrierListAnswer:
        """List a room's barriers."""

    @overload
    def __call__(self, name: Literal["barrier_get"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierGetInput]) -> s.BarrierGetAnswer:
        """Get a barrier's newest generation."""

    @overload
    def __call__(self, name: Literal["barrier_cancel"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierCancelInput]) -> s.BarrierCancelAnswer:
        """Cancel a barrier."""

    @overload
    def __call__(self, name: Literal["room_overview"], options: CallOptions | None = None, /, **input: Unpack[s.RoomOverviewInput]) -> s.RoomOverviewAnswer:
        """Show rooms at a glance."""

    @overload
    def __call__(self, name: Literal["room_waits"], options: CallOptions | None = None, /, **input: Unpack[s.RoomWaitsInput]) -> s.RoomWaitsAnswer:
        """Show the waits and deadlocks of a room."""

    @overload
    def __call__(self, name: Literal["room_timeline"], options: CallOptions | None = None, /, **input: Unpack[s.RoomTimelineInput]) -> s.RoomTimelineAnswer:
        """Show a room's history as spans and marks."""

    @overload
    def __call__(self, name: Literal["template_list"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateListInput]) -> s.TemplateListAnswer:
        """List templates."""

    @overload
    def __call__(self, name: Literal["template_create"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateCreateInput]) -> s.TemplateCreateAnswer:
        """Build a template of the organization."""

    @overload
    def __call__(self, name: Literal["template_get"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateGetInput]) -> s.TemplateGetAnswer:
        """Get a template."""

    @overload
    def __call__(self, name: Literal["template_remove"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateRemoveInput]) -> s.TemplateRemoveAnswer:
        """Remove a template of the organization."""

    @overload
    def __call__(self, name: Literal["template_build_get"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateBuildGetInput]) -> s.TemplateBuildGetAnswer:
        """Get a build of a template."""

    @overload
    def __call__(self, name: Literal["template_build_end"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateBuildEndInput]) -> s.TemplateBuildEndAnswer:
        """End a build of a template."""

    @overload
    def __call__(self, name: Literal["audit_list"], options: CallOptions | None = None, /, **input: Unpack[s.AuditListInput]) -> s.AuditListAnswer:
        """List a room's audit."""

    @overload
    def __call__(self, name: Literal["org_audit_list"], options: CallOptions | None = None, /, **input: Unpack[s.OrgAuditListInput]) -> s.OrgAuditListAnswer:
        """List the organization's audit."""

    @overload
    def __call__(self, name: Literal["audit_summary"], options: CallOptions | None = None, /, **input: Unpack[s.AuditSummaryInput]) -> s.AuditSummaryAnswer:
        """Sum up a room's audit."""

    @overload
    def __call__(self, name: Literal["org_audit_summary"], options: CallOptions | None = None, /, **input: Unpack[s.OrgAuditSummaryInput]) -> s.OrgAuditSummaryAnswer:
        """Sum up the organization's audit."""

    @overload
    def __call__(self, name: Literal["audit_verify"], options: CallOptions | None = None, /, **input: Unpack[s.AuditVerifyInput]) -> s.AuditVerifyAnswer:
        """Verify the chain that a room's audit is part of."""

    @overload
    def __call__(self, name: Literal["org_audit_verify"], options: CallOptions | None = None, /, **input: Unpack[s.OrgAuditVerifyInput]) -> s.OrgAuditVerifyAnswer:
        """Verify the organization's audit chain."""


class AsyncCall(Protocol):
    """Calls an operation by its name; awaitable."""

    @overload
    def __call__(self, name: Literal["health"], options: CallOptions | None = None, /, **input: Unpack[s.HealthInput]) -> Coroutine[Any, Any, s.HealthAnswer]:
        """Whether the service is ready."""

    @overload
    def __call__(self, name: Literal["metrics"], options: CallOptions | None = None, /, **input: Unpack[s.MetricsInput]) -> Coroutine[Any, Any, str]:
        """Figures of the host and the service for Prometheus."""

    @overload
    def __call__(self, name: Literal["config_get"], options: CallOptions | None = None, /, **input: Unpack[s.ConfigGetInput]) -> Coroutine[Any, Any, s.ConfigGetAnswer]:
        """Show limits, defaults and guarantees."""

    @overload
    def __call__(self, name: Literal["me_get"], options: CallOptions | None = None, /, **input: Unpack[s.MeGetInput]) -> Coroutine[Any, Any, s.MeGetAnswer]:
        """Get the caller's API key."""

    @overload
    def __call__(self, name: Literal["locate"], options: CallOptions | None = None, /, **input: Unpack[s.LocateInput]) -> Coroutine[Any, Any, s.LocateAnswer]:
        """Find the resource with an id."""

    @overload
    def __call__(self, name: Literal["host_list"], options: CallOptions | None = None, /, **input: Unpack[s.HostListInput]) -> Coroutine[Any, Any, s.HostListAnswer]:
        """List the hosts of the service."""

    @overload
    def __call__(self, name: Literal["host_evacuate"], options: CallOptions | None = None, /, **input: Unpack[s.HostEvacuateInput]) -> Coroutine[Any, Any, s.HostEvacuateAnswer]:
        """Move one room of a host to another host."""

    @overload
    def __call__(self, name: Literal["openapi_get"], options: CallOptions | None = None, /, **input: Unpack[s.OpenapiGetInput]) -> Coroutine[Any, Any, s.OpenapiGetAnswer]:
        """This interface as OpenAPI 3.1."""

    @overload
    def __call__(self, name: Literal["org_create"], options: CallOptions | None = None, /, **input: Unpack[s.OrgCreateInput]) -> Coroutine[Any, Any, s.OrgCreateAnswer]:
        """Create an organization."""

    @overload
    def __call__(self, name: Literal["org_delete"], options: CallOptions | None = None, /, **input: Unpack[s.OrgDeleteInput]) -> Coroutine[Any, Any, s.OrgDeleteAnswer]:
        """End an organization."""

    @overload
    def __call__(self, name: Literal["key_create"], options: CallOptions | None = None, /, **input: Unpack[s.KeyCreateInput]) -> Coroutine[Any, Any, s.KeyCreateAnswer]:
        """Create an API key."""

    @overload
    def __call__(self, name: Literal["key_list"], options: CallOptions | None = None, /, **input: Unpack[s.KeyListInput]) -> Coroutine[Any, Any, s.KeyListAnswer]:
        """List the organization's API keys."""

    @overload
    def __call__(self, name: Literal["key_rotate"], options: CallOptions | None = None, /, **input: Unpack[s.KeyRotateInput]) -> Coroutine[Any, Any, s.KeyRotateAnswer]:
        """Replace an API key."""

    @overload
    def __call__(self, name: Literal["key_revoke"], options: CallOptions | None = None, /, **input: Unpack[s.KeyRevokeInput]) -> Coroutine[Any, Any, s.KeyRevokeAnswer]:
        """Revoke an API key."""

    @overload
    def __call__(self, name: Literal["webhook_create"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookCreateInput]) -> Coroutine[Any, Any, s.WebhookCreateAnswer]:
        """Create a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_list"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookListInput]) -> Coroutine[Any, Any, s.WebhookListAnswer]:
        """List the organization's webhooks."""

    @overload
    def __call__(self, name: Literal["webhook_get"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookGetInput]) -> Coroutine[Any, Any, s.WebhookGetAnswer]:
        """Get a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_update"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookUpdateInput]) -> Coroutine[Any, Any, s.WebhookUpdateAnswer]:
        """Change a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_delete"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookDeleteInput]) -> Coroutine[Any, Any, s.WebhookDeleteAnswer]:
        """Delete a webhook."""

    @overload
    def __call__(self, name: Literal["webhook_rotate"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookRotateInput]) -> Coroutine[Any, Any, s.WebhookRotateAnswer]:
        """Replace a webhook's secret."""

    @overload
    def __call__(self, name: Literal["webhook_deliveries"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookDeliveriesInput]) -> Coroutine[Any, Any, s.WebhookDeliveriesAnswer]:
        """List a webhook's failed and retried deliveries."""

    @overload
    def __call__(self, name: Literal["webhook_redeliver"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookRedeliverInput]) -> Coroutine[Any, Any, s.WebhookRedeliverAnswer]:
        """Send an event again."""

    @overload
    def __call__(self, name: Literal["webhook_test"], options: CallOptions | None = None, /, **input: Unpack[s.WebhookTestInput]) -> Coroutine[Any, Any, s.WebhookTestAnswer]:
        """Send a test event."""

    @overload
    def __call__(self, name: Literal["billing_get"], options: CallOptions | None = None, /, **input: Unpack[s.BillingGetInput]) -> Coroutine[Any, Any, s.BillingGetAnswer]:
        """Show the organization's plan and subscription."""

    @overload
    def __call__(self, name: Literal["billing_checkout"], options: CallOptions | None = None, /, **input: Unpack[s.BillingCheckoutInput]) -> Coroutine[Any, Any, s.BillingCheckoutAnswer]:
        """Start a checkout for plan starter."""

    @overload
    def __call__(self, name: Literal["billing_portal"], options: CallOptions | None = None, /, **input: Unpack[s.BillingPortalInput]) -> Coroutine[Any, Any, s.BillingPortalAnswer]:
        """Open cards, invoices and cancellation of a subscription."""

    @overload
    def __call__(self, name: Literal["billing_success"], options: CallOptions | None = None, /, **input: Unpack[s.BillingSuccessInput]) -> Coroutine[Any, Any, s.BillingSuccessAnswer]:
        """Show the result of a checkout."""

    @overload
    def __call__(self, name: Literal["billing_key"], options: CallOptions | None = None, /, **input: Unpack[s.BillingKeyInput]) -> Coroutine[Any, Any, s.BillingKeyAnswer]:
        """Create the key that comes with a checkout."""

    @overload
    def __call__(self, name: Literal["account_get"], options: CallOptions | None = None, /, **input: Unpack[s.AccountGetInput]) -> Coroutine[Any, Any, s.AccountGetAnswer]:
        """Show the signed-in person."""

    @overload
    def __call__(self, name: Literal["account_update"], options: CallOptions | None = None, /, **input: Unpack[s.AccountUpdateInput]) -> Coroutine[Any, Any, s.AccountUpdateAnswer]:
        """Change one's name, or the session's organization."""

    @overload
    def __call__(self, name: Literal["account_delete"], options: CallOptions | None = None, /, **input: Unpack[s.AccountDeleteInput]) -> Coroutine[Any, Any, s.AccountDeleteAnswer]:
        """Delete one's account."""

    @overload
    def __call__(self, name: Literal["account_export"], options: CallOptions | None = None, /, **input: Unpack[s.AccountExportInput]) -> Coroutine[Any, Any, s.AccountExportAnswer]:
        """Show all data stored about oneself."""

    @overload
    def __call__(self, name: Literal["session_list"], options: CallOptions | None = None, /, **input: Unpack[s.SessionListInput]) -> Coroutine[Any, Any, s.SessionListAnswer]:
        """List one's sessions."""

    @overload
    def __call__(self, name: Literal["session_end"], options: CallOptions | None = None, /, **input: Unpack[s.SessionEndInput]) -> Coroutine[Any, Any, s.SessionEndAnswer]:
        """End a session."""

    @overload
    def __call__(self, name: Literal["grant_list"], options: CallOptions | None = None, /, **input: Unpack[s.GrantListInput]) -> Coroutine[Any, Any, s.GrantListAnswer]:
        """List the applications that one has authorized."""

    @overload
    def __call__(self, name: Literal["grant_create"], options: CallOptions | None = None, /, **input: Unpack[s.GrantCreateInput]) -> Coroutine[Any, Any, s.GrantCreateAnswer]:
        """Authorize an application at /authorize."""

    @overload
    def __call__(self, name: Literal["device_decide"], options: CallOptions | None = None, /, **input: Unpack[s.DeviceDecideInput]) -> Coroutine[Any, Any, s.DeviceDecideAnswer]:
        """Approve or reject an application that shows a code."""

    @overload
    def __call__(self, name: Literal["grant_end"], options: CallOptions | None = None, /, **input: Unpack[s.GrantEndInput]) -> Coroutine[Any, Any, s.GrantEndAnswer]:
        """Revoke an application's access."""

    @overload
    def __call__(self, name: Literal["application_list"], options: CallOptions | None = None, /, **input: Unpack[s.ApplicationListInput]) -> Coroutine[Any, Any, s.ApplicationListAnswer]:
        """List the applications that members have authorized."""

    @overload
    def __call__(self, name: Literal["application_end"], options: CallOptions | None = None, /, **input: Unpack[s.ApplicationEndInput]) -> Coroutine[Any, Any, s.ApplicationEndAnswer]:
        """Revoke the access of a member's application."""

    @overload
    def __call__(self, name: Literal["identity_list"], options: CallOptions | None = None, /, **input: Unpack[s.IdentityListInput]) -> Coroutine[Any, Any, s.IdentityListAnswer]:
        """List one's external accounts."""

    @overload
    def __call__(self, name: Literal["identity_begin"], options: CallOptions | None = None, /, **input: Unpack[s.IdentityBeginInput]) -> Coroutine[Any, Any, s.IdentityBeginAnswer]:
        """Start linking an external account."""

    @overload
    def __call__(self, name: Literal["identity_remove"], options: CallOptions | None = None, /, **input: Unpack[s.IdentityRemoveInput]) -> Coroutine[Any, Any, s.IdentityRemoveAnswer]:
        """Unlink an external account."""

    @overload
    def __call__(self, name: Literal["passkey_list"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyListInput]) -> Coroutine[Any, Any, s.PasskeyListAnswer]:
        """List one's passkeys."""

    @overload
    def __call__(self, name: Literal["passkey_add"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyAddInput]) -> Coroutine[Any, Any, s.PasskeyAddAnswer]:
        """Add a passkey."""

    @overload
    def __call__(self, name: Literal["passkey_options"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyOptionsInput]) -> Coroutine[Any, Any, s.PasskeyOptionsAnswer]:
        """Start creating a passkey."""

    @overload
    def __call__(self, name: Literal["passkey_remove"], options: CallOptions | None = None, /, **input: Unpack[s.PasskeyRemoveInput]) -> Coroutine[Any, Any, s.PasskeyRemoveAnswer]:
        """Remove a passkey."""

    @overload
    def __call__(self, name: Literal["member_list"], options: CallOptions | None = None, /, **input: Unpack[s.MemberListInput]) -> Coroutine[Any, Any, s.MemberListAnswer]:
        """List the organization's members."""

    @overload
    def __call__(self, name: Literal["member_update"], options: CallOptions | None = None, /, **input: Unpack[s.MemberUpdateInput]) -> Coroutine[Any, Any, s.MemberUpdateAnswer]:
        """Change a member's role."""

    @overload
    def __call__(self, name: Literal["member_remove"], options: CallOptions | None = None, /, **input: Unpack[s.MemberRemoveInput]) -> Coroutine[Any, Any, s.MemberRemoveAnswer]:
        """Remove a member."""

    @overload
    def __call__(self, name: Literal["invitation_create"], options: CallOptions | None = None, /, **input: Unpack[s.InvitationCreateInput]) -> Coroutine[Any, Any, s.InvitationCreateAnswer]:
        """Invite a person."""

    @overload
    def __call__(self, name: Literal["invitation_list"], options: CallOptions | None = None, /, **input: Unpack[s.InvitationListInput]) -> Coroutine[Any, Any, s.InvitationListAnswer]:
        """List the pending invitations."""

    @overload
    def __call__(self, name: Literal["invitation_delete"], options: CallOptions | None = None, /, **input: Unpack[s.InvitationDeleteInput]) -> Coroutine[Any, Any, s.InvitationDeleteAnswer]:
        """Withdraw an invitation."""

    @overload
    def __call__(self, name: Literal["usage"], options: CallOptions | None = None, /, **input: Unpack[s.UsageInput]) -> Coroutine[Any, Any, s.UsageAnswer]:
        """Show the organization's usage."""

    @overload
    def __call__(self, name: Literal["credit_list"], options: CallOptions | None = None, /, **input: Unpack[s.CreditListInput]) -> Coroutine[Any, Any, s.CreditListAnswer]:
        """List credits granted and spent."""

    @overload
    def __call__(self, name: Literal["top_get"], options: CallOptions | None = None, /, **input: Unpack[s.TopGetInput]) -> Coroutine[Any, Any, s.TopGetAnswer]:
        """Show the current resource usage of sandboxes."""

    @overload
    def __call__(self, name: Literal["room_create"], options: CallOptions | None = None, /, **input: Unpack[s.RoomCreateInput]) -> Coroutine[Any, Any, s.RoomCreateAnswer]:
        """Create a room."""

    @overload
    def __call__(self, name: Literal["room_list"], options: CallOptions | None = None, /, **input: Unpack[s.RoomListInput]) -> Coroutine[Any, Any, s.RoomListAnswer]:
        """List rooms."""

    @overload
    def __call__(self, name: Literal["room_get"], options: CallOptions | None = None, /, **input: Unpack[s.RoomGetInput]) -> Coroutine[Any, Any, s.RoomGetAnswer]:
        """Get a room."""

    @overload
    def __call__(self, name: Literal["room_update"], options: CallOptions | None = None, /, **input: Unpack[s.RoomUpdateInput]) -> Coroutine[Any, Any, s.RoomUpdateAnswer]:
        """Change a room's labels and end."""

    @overload
    def __call__(self, name: Literal["room_destroy"], options: CallOptions | None = None, /, **input: Unpack[s.RoomDestroyInput]) -> Coroutine[Any, Any, s.RoomDestroyAnswer]:
        """Destroy a room."""

    @overload
    def __call__(self, name: Literal["sandbox_create"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxCreateInput]) -> Coroutine[Any, Any, s.SandboxCreateAnswer]:
        """Create a sandbox from a template."""

    @overload
    def __call__(self, name: Literal["sandbox_list"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxListInput]) -> Coroutine[Any, Any, s.SandboxListAnswer]:
        """List a room's sandboxes."""

    @overload
    def __call__(self, name: Literal["org_sandbox_list"], options: CallOptions | None = None, /, **input: Unpack[s.OrgSandboxListInput]) -> Coroutine[Any, Any, s.OrgSandboxListAnswer]:
        """List sandboxes of all rooms."""

    @overload
    def __call__(self, name: Literal["sandbox_get"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxGetInput]) -> Coroutine[Any, Any, s.SandboxGetAnswer]:
        """Get a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_update"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxUpdateInput]) -> Coroutine[Any, Any, s.SandboxUpdateAnswer]:
        """Change a sandbox's labels and timeouts."""

    @overload
    def __call__(self, name: Literal["sandbox_destroy"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxDestroyInput]) -> Coroutine[Any, Any, s.SandboxDestroyAnswer]:
        """Destroy a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_standby"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxStandbyInput]) -> Coroutine[Any, Any, s.SandboxStandbyAnswer]:
        """Pause a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_hibernate"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxHibernateInput]) -> Coroutine[Any, Any, s.SandboxHibernateAnswer]:
        """Hibernate a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_snapshot"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxSnapshotInput]) -> Coroutine[Any, Any, s.SandboxSnapshotAnswer]:
        """Take a snapshot of a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_fork"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxForkInput]) -> Coroutine[Any, Any, s.SandboxForkAnswer]:
        """Fork a running sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_rollback"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxRollbackInput]) -> Coroutine[Any, Any, s.SandboxRollbackAnswer]:
        """Roll back a sandbox to a snapshot."""

    @overload
    def __call__(self, name: Literal["snapshot_list"], options: CallOptions | None = None, /, **input: Unpack[s.SnapshotListInput]) -> Coroutine[Any, Any, s.SnapshotListAnswer]:
        """List a room's snapshots."""

    @overload
    def __call__(self, name: Literal["snapshot_get"], options: CallOptions | None = None, /, **input: Unpack[s.SnapshotGetInput]) -> Coroutine[Any, Any, s.SnapshotGetAnswer]:
        """Get a snapshot."""

    @overload
    def __call__(self, name: Literal["snapshot_delete"], options: CallOptions | None = None, /, **input: Unpack[s.SnapshotDeleteInput]) -> Coroutine[Any, Any, s.SnapshotDeleteAnswer]:
        """Delete a snapshot."""

    @overload
    def __call__(self, name: Literal["room_checkpoint"], options: CallOptions | None = None, /, **input: Unpack[s.RoomCheckpointInput]) -> Coroutine[Any, Any, s.RoomCheckpointAnswer]:
        """Take a checkpoint of a room."""

    @overload
    def __call__(self, name: Literal["checkpoint_list"], options: CallOptions | None = None, /, **input: Unpack[s.CheckpointListInput]) -> Coroutine[Any, Any, s.CheckpointListAnswer]:
        """List a room's checkpoints."""

    @overload
    def __call__(self, name: Literal["checkpoint_get"], options: CallOptions | None = None, /, **input: Unpack[s.CheckpointGetInput]) -> Coroutine[Any, Any, s.CheckpointGetAnswer]:
        """Get a checkpoint."""

    @overload
    def __call__(self, name: Literal["checkpoint_delete"], options: CallOptions | None = None, /, **input: Unpack[s.CheckpointDeleteInput]) -> Coroutine[Any, Any, s.CheckpointDeleteAnswer]:
        """Delete a checkpoint."""

    @overload
    def __call__(self, name: Literal["room_fork"], options: CallOptions | None = None, /, **input: Unpack[s.RoomForkInput]) -> Coroutine[Any, Any, s.RoomForkAnswer]:
        """Fork a room."""

    @overload
    def __call__(self, name: Literal["room_restore"], options: CallOptions | None = None, /, **input: Unpack[s.RoomRestoreInput]) -> Coroutine[Any, Any, s.RoomRestoreAnswer]:
        """Restore a room from a checkpoint."""

    @overload
    def __call__(self, name: Literal["room_move"], options: CallOptions | None = None, /, **input: Unpack[s.RoomMoveInput]) -> Coroutine[Any, Any, s.RoomMoveAnswer]:
        """Move a room to another host."""

    @overload
    def __call__(self, name: Literal["room_from_backup"], options: CallOptions | None = None, /, **input: Unpack[s.RoomFromBackupInput]) -> Coroutine[Any, Any, s.RoomFromBackupAnswer]:
        """Create a room from a backup."""

    @overload
    def __call__(self, name: Literal["sandbox_resume"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxResumeInput]) -> Coroutine[Any, Any, s.SandboxResumeAnswer]:
        """Resume a sandbox in standby or hibernation."""

    @overload
    def __call__(self, name: Literal["sandbox_logs"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxLogsInput]) -> Coroutine[Any, Any, s.SandboxLogsAnswer]:
        """Read a sandbox's console or agent log."""

    @overload
    def __call__(self, name: Literal["sandbox_metrics"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxMetricsInput]) -> Coroutine[Any, Any, s.SandboxMetricsAnswer]:
        """Measure a sandbox."""

    @overload
    def __call__(self, name: Literal["egress_get"], options: CallOptions | None = None, /, **input: Unpack[s.EgressGetInput]) -> Coroutine[Any, Any, s.EgressGetAnswer]:
        """Get a sandbox's egress list and its traffic."""

    @overload
    def __call__(self, name: Literal["egress_set"], options: CallOptions | None = None, /, **input: Unpack[s.EgressSetInput]) -> Coroutine[Any, Any, s.EgressSetAnswer]:
        """Change the destinations that a sandbox may connect to."""

    @overload
    def __call__(self, name: Literal["egress_explain"], options: CallOptions | None = None, /, **input: Unpack[s.EgressExplainInput]) -> Coroutine[Any, Any, s.EgressExplainAnswer]:
        """Check whether a sandbox may connect to a host, and why."""

    @overload
    def __call__(self, name: Literal["sandbox_network"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxNetworkInput]) -> Coroutine[Any, Any, s.SandboxNetworkAnswer]:
        """Show a sandbox's connections, allowed and refused."""

    @overload
    def __call__(self, name: Literal["sandbox_exec"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxExecInput]) -> Coroutine[Any, Any, s.SandboxExecAnswer]:
        """Run a command and wait for it."""

    @overload
    def __call__(self, name: Literal["sandbox_file_put"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFilePutInput]) -> Coroutine[Any, Any, s.SandboxFilePutAnswer]:
        """Stream a file into a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_file_list"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileListInput]) -> Coroutine[Any, Any, s.SandboxFileListAnswer]:
        """List a directory of a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_file_delete"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileDeleteInput]) -> Coroutine[Any, Any, s.SandboxFileDeleteAnswer]:
        """Delete an entry of a sandbox's file system."""

    @overload
    def __call__(self, name: Literal["sandbox_file_stat"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileStatInput]) -> Coroutine[Any, Any, s.SandboxFileStatAnswer]:
        """Describe one entry of a sandbox's file system."""

    @overload
    def __call__(self, name: Literal["sandbox_file_mkdir"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileMkdirInput]) -> Coroutine[Any, Any, s.SandboxFileMkdirAnswer]:
        """Make a directory in a sandbox."""

    @overload
    def __call__(self, name: Literal["sandbox_file_move"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxFileMoveInput]) -> Coroutine[Any, Any, s.SandboxFileMoveAnswer]:
        """Move an entry of a sandbox's file system."""

    @overload
    def __call__(self, name: Literal["terminal_create"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalCreateInput]) -> Coroutine[Any, Any, s.TerminalCreateAnswer]:
        """Open a terminal."""

    @overload
    def __call__(self, name: Literal["terminal_list"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalListInput]) -> Coroutine[Any, Any, s.TerminalListAnswer]:
        """List a sandbox's terminals."""

    @overload
    def __call__(self, name: Literal["terminal_get"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalGetInput]) -> Coroutine[Any, Any, s.TerminalGetAnswer]:
        """Get a terminal."""

    @overload
    def __call__(self, name: Literal["terminal_close"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalCloseInput]) -> Coroutine[Any, Any, s.TerminalCloseAnswer]:
        """End a terminal."""

    @overload
    def __call__(self, name: Literal["terminal_token"], options: CallOptions | None = None, /, **input: Unpack[s.TerminalTokenInput]) -> Coroutine[Any, Any, s.TerminalTokenAnswer]:
        """Make another token for a terminal."""

    @overload
    def __call__(self, name: Literal["computer"], options: CallOptions | None = None, /, **input: Unpack[s.ComputerInput]) -> Coroutine[Any, Any, s.ComputerAnswer]:
        """Use a sandbox's screen, keyboard and mouse."""

    @overload
    def __call__(self, name: Literal["screen_ticket"], options: CallOptions | None = None, /, **input: Unpack[s.ScreenTicketInput]) -> Coroutine[Any, Any, s.ScreenTicketAnswer]:
        """Create a ticket for a sandbox's screen."""

    @overload
    def __call__(self, name: Literal["recording_start"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingStartInput]) -> Coroutine[Any, Any, s.RecordingStartAnswer]:
        """Start recording a sandbox's screen."""

    @overload
    def __call__(self, name: Literal["recording_list"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingListInput]) -> Coroutine[Any, Any, s.RecordingListAnswer]:
        """List the recordings of a sandbox's screen."""

    @overload
    def __call__(self, name: Literal["recording_get"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingGetInput]) -> Coroutine[Any, Any, s.RecordingGetAnswer]:
        """Get one recording's record."""

    @overload
    def __call__(self, name: Literal["recording_delete"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingDeleteInput]) -> Coroutine[Any, Any, s.RecordingDeleteAnswer]:
        """Delete a recording."""

    @overload
    def __call__(self, name: Literal["recording_stop"], options: CallOptions | None = None, /, **input: Unpack[s.RecordingStopInput]) -> Coroutine[Any, Any, s.RecordingStopAnswer]:
        """Stop recording."""

    @overload
    def __call__(self, name: Literal["ssh_access_create"], options: CallOptions | None = None, /, **input: Unpack[s.SshAccessCreateInput]) -> Coroutine[Any, Any, s.SshAccessCreateAnswer]:
        """Make a short-lived password for SSH."""

    @overload
    def __call__(self, name: Literal["ssh_access_list"], options: CallOptions | None = None, /, **input: Unpack[s.SshAccessListInput]) -> Coroutine[Any, Any, s.SshAccessListAnswer]:
        """List the short-lived passwords of a sandbox."""

    @overload
    def __call__(self, name: Literal["ssh_access_delete"], options: CallOptions | None = None, /, **input: Unpack[s.SshAccessDeleteInput]) -> Coroutine[Any, Any, s.SshAccessDeleteAnswer]:
        """Revoke a short-lived password."""

    @overload
    def __call__(self, name: Literal["ssh_key_add"], options: CallOptions | None = None, /, **input: Unpack[s.SshKeyAddInput]) -> Coroutine[Any, Any, s.SshKeyAddAnswer]:
        """Register a public key for SSH."""

    @overload
    def __call__(self, name: Literal["ssh_key_list"], options: CallOptions | None = None, /, **input: Unpack[s.SshKeyListInput]) -> Coroutine[Any, Any, s.SshKeyListAnswer]:
        """List the organization's public keys for SSH."""

    @overload
    def __call__(self, name: Literal["ssh_key_remove"], options: CallOptions | None = None, /, **input: Unpack[s.SshKeyRemoveInput]) -> Coroutine[Any, Any, s.SshKeyRemoveAnswer]:
        """Remove a public key."""

    @overload
    def __call__(self, name: Literal["sandbox_expose_port"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxExposePortInput]) -> Coroutine[Any, Any, s.SandboxExposePortAnswer]:
        """Expose a port of a sandbox."""

    @overload
    def __call__(self, name: Literal["port_list"], options: CallOptions | None = None, /, **input: Unpack[s.PortListInput]) -> Coroutine[Any, Any, s.PortListAnswer]:
        """List a sandbox's exposed ports."""

    @overload
    def __call__(self, name: Literal["sandbox_unexpose_port"], options: CallOptions | None = None, /, **input: Unpack[s.SandboxUnexposePortInput]) -> Coroutine[Any, Any, s.SandboxUnexposePortAnswer]:
        """Unexpose a port of a sandbox."""

    @overload
    def __call__(self, name: Literal["browser_get"], options: CallOptions | None = None, /, **input: Unpack[s.BrowserGetInput]) -> Coroutine[Any, Any, s.BrowserGetAnswer]:
        """Get the URL of a sandbox's browser, for Playwright and Puppeteer."""

    @overload
    def __call__(self, name: Literal["execution_start"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionStartInput]) -> Coroutine[Any, Any, s.ExecutionStartAnswer]:
        """Start a command and leave it running."""

    @overload
    def __call__(self, name: Literal["execution_list"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionListInput]) -> Coroutine[Any, Any, s.ExecutionListAnswer]:
        """List a sandbox's executions."""

    @overload
    def __call__(self, name: Literal["execution_get"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionGetInput]) -> Coroutine[Any, Any, s.ExecutionGetAnswer]:
        """Get an execution."""

    @overload
    def __call__(self, name: Literal["execution_end"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionEndInput]) -> Coroutine[Any, Any, s.ExecutionEndAnswer]:
        """End an execution."""

    @overload
    def __call__(self, name: Literal["execution_stdin"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionStdinInput]) -> Coroutine[Any, Any, s.ExecutionStdinAnswer]:
        """Write to an execution's standard input."""

    @overload
    def __call__(self, name: Literal["execution_signal"], options: CallOptions | None = None, /, **input: Unpack[s.ExecutionSignalInput]) -> Coroutine[Any, Any, s.ExecutionSignalAnswer]:
        """Send an execution a signal."""

    @overload
    def __call__(self, name: Literal["fs_write"], options: CallOptions | None = None, /, **input: Unpack[s.FsWriteInput]) -> Coroutine[Any, Any, s.FsWriteAnswer]:
        """Write a file on the drive."""

    @overload
    def __call__(self, name: Literal["fs_list"], options: CallOptions | None = None, /, **input: Unpack[s.FsListInput]) -> Coroutine[Any, Any, s.FsListAnswer]:
        """List the drive."""

    @overload
    def __call__(self, name: Literal["fs_read"], options: CallOptions | None = None, /, **input: Unpack[s.FsReadInput]) -> Coroutine[Any, Any, s.FsReadAnswer]:
        """Read a file of the drive."""

    @overload
    def __call__(self, name: Literal["fs_stat"], options: CallOptions | None = None, /, **input: Unpack[s.FsStatInput]) -> Coroutine[Any, Any, s.FsStatAnswer]:
        """Describe one entry of the drive."""

    @overload
    def __call__(self, name: Literal["fs_mkdir"], options: CallOptions | None = None, /, **input: Unpack[s.FsMkdirInput]) -> Coroutine[Any, Any, s.FsMkdirAnswer]:
        """Make a directory on the drive."""

    @overload
    def __call__(self, name: Literal["fs_move"], options: CallOptions | None = None, /, **input: Unpack[s.FsMoveInput]) -> Coroutine[Any, Any, s.FsMoveAnswer]:
        """Move an entry of the drive."""

    @overload
    def __call__(self, name: Literal["fs_delete"], options: CallOptions | None = None, /, **input: Unpack[s.FsDeleteInput]) -> Coroutine[Any, Any, s.FsDeleteAnswer]:
        """Delete an entry of the drive."""

    @overload
    def __call__(self, name: Literal["file_put"], options: CallOptions | None = None, /, **input: Unpack[s.FilePutInput]) -> Coroutine[Any, Any, s.FilePutAnswer]:
        """Stream a file onto the drive."""

    @overload
    def __call__(self, name: Literal["agent_send"], options: CallOptions | None = None, /, **input: Unpack[s.AgentSendInput]) -> Coroutine[Any, Any, s.AgentSendAnswer]:
        """Send a message."""

    @overload
    def __call__(self, name: Literal["agent_wait"], options: CallOptions | None = None, /, **input: Unpack[s.AgentWaitInput]) -> Coroutine[Any, Any, s.AgentWaitAnswer]:
        """Read an inbox, or the room's messages."""

    @overload
    def __call__(self, name: Literal["message_send_many"], options: CallOptions | None = None, /, **input: Unpack[s.MessageSendManyInput]) -> Coroutine[Any, Any, s.MessageSendManyAnswer]:
        """Send many messages."""

    @overload
    def __call__(self, name: Literal["message_get"], options: CallOptions | None = None, /, **input: Unpack[s.MessageGetInput]) -> Coroutine[Any, Any, s.MessageGetAnswer]:
        """Get a message and its delivery state."""

    @overload
    def __call__(self, name: Literal["message_ack"], options: CallOptions | None = None, /, **input: Unpack[s.MessageAckInput]) -> Coroutine[Any, Any, s.MessageAckAnswer]:
        """Acknowledge a message."""

    @overload
    def __call__(self, name: Literal["message_reply"], options: CallOptions | None = None, /, **input: Unpack[s.MessageReplyInput]) -> Coroutine[Any, Any, s.MessageReplyAnswer]:
        """Reply to a message."""

    @overload
    def __call__(self, name: Literal["agent_subscribe"], options: CallOptions | None = None, /, **input: Unpack[s.AgentSubscribeInput]) -> Coroutine[Any, Any, s.AgentSubscribeAnswer]:
        """Set the topics that an agent subscribes to."""

    @overload
    def __call__(self, name: Literal["agent_list"], options: CallOptions | None = None, /, **input: Unpack[s.AgentListInput]) -> Coroutine[Any, Any, s.AgentListAnswer]:
        """List the agents of a room."""

    @overload
    def __call__(self, name: Literal["barrier_arrive"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierArriveInput]) -> Coroutine[Any, Any, s.BarrierArriveAnswer]:
        """Arrive at a barrier, and wait until all have."""

    @overload
    def __call__(self, name: Literal["barrier_list"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierListInput]) -> Coroutine[Any, Any, s.BarrierListAnswer]:
        """List a room's barriers."""

    @overload
    def __call__(self, name: Literal["barrier_get"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierGetInput]) -> Coroutine[Any, Any, s.BarrierGetAnswer]:
        """Get a barrier's newest generation."""

    @overload
    def __call__(self, name: Literal["barrier_cancel"], options: CallOptions | None = None, /, **input: Unpack[s.BarrierCancelInput]) -> Coroutine[Any, Any, s.BarrierCancelAnswer]:
        """Cancel a barrier."""

    @overload
    def __call__(self, name: Literal["room_overview"], options: CallOptions | None = None, /, **input: Unpack[s.RoomOverviewInput]) -> Coroutine[Any, Any, s.RoomOverviewAnswer]:
        """Show rooms at a glance."""

    @overload
    def __call__(self, name: Literal["room_waits"], options: CallOptions | None = None, /, **input: Unpack[s.RoomWaitsInput]) -> Coroutine[Any, Any, s.RoomWaitsAnswer]:
        """Show the waits and deadlocks of a room."""

    @overload
    def __call__(self, name: Literal["room_timeline"], options: CallOptions | None = None, /, **input: Unpack[s.RoomTimelineInput]) -> Coroutine[Any, Any, s.RoomTimelineAnswer]:
        """Show a room's history as spans and marks."""

    @overload
    def __call__(self, name: Literal["template_list"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateListInput]) -> Coroutine[Any, Any, s.TemplateListAnswer]:
        """List templates."""

    @overload
    def __call__(self, name: Literal["template_create"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateCreateInput]) -> Coroutine[Any, Any, s.TemplateCreateAnswer]:
        """Build a template of the organization."""

    @overload
    def __call__(self, name: Literal["template_get"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateGetInput]) -> Coroutine[Any, Any, s.TemplateGetAnswer]:
        """Get a template."""

    @overload
    def __call__(self, name: Literal["template_remove"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateRemoveInput]) -> Coroutine[Any, Any, s.TemplateRemoveAnswer]:
        """Remove a template of the organization."""

    @overload
    def __call__(self, name: Literal["template_build_get"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateBuildGetInput]) -> Coroutine[Any, Any, s.TemplateBuildGetAnswer]:
        """Get a build of a template."""

    @overload
    def __call__(self, name: Literal["template_build_end"], options: CallOptions | None = None, /, **input: Unpack[s.TemplateBuildEndInput]) -> Coroutine[Any, Any, s.TemplateBuildEndAnswer]:
        """End a build of a template."""

    @overload
    def __call__(self, name: Literal["audit_list"], options: CallOptions | None = None, /, **input: Unpack[s.AuditListInput]) -> Coroutine[Any, Any, s.AuditListAnswer]:
        """List a room's audit."""

    @overload
    def __call__(self, name: Literal["org_audit_list"], options: CallOptions | None = None, /, **input: Unpack[s.OrgAuditListInput]) -> Coroutine[Any, Any, s.OrgAuditListAnswer]:
        """List the organization's audit."""

    @overload
    def __call__(self, name: Literal["audit_summary"], options: CallOptions | None = None, /, **input: Unpack[s.AuditSummaryInput]) -> Coroutine[Any, Any, s.AuditSummaryAnswer]:
        """Sum up a room's audit."""

    @overload
    def __call__(self, name: Literal["org_audit_summary"], options: CallOptions | None = None, /, **input: Unpack[s.OrgAuditSummaryInput]) -> Coroutine[Any, Any, s.OrgAuditSummaryAnswer]:
        """Sum up the organization's audit."""

    @overload
    def __call__(self, name: Literal["audit_verify"], options: CallOptions | None = None, /, **input: Unpack[s.AuditVerifyInput]) -> Coroutine[Any, Any, s.AuditVerifyAnswer]:
        """Verify the chain that a room's audit is part of."""

    @overload
    def __call__(self, name: Literal["org_audit_verify"], options: CallOptions | None = None, /, **input: Unpack[s.OrgAuditVerifyInput]) -> Coroutine[Any, Any, s.OrgAuditVerifyAnswer]:
        """Verify the organization's audit chain."""
