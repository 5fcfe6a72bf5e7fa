"""A daemon that imports this as one of its tools holds notices for a second, and not for a minute: nothing
says that a host with a URL has died, and until then nobody else is told what that host may have read."""

from meantime.surfaces.mcp import notice_delivery

notice_delivery.HOLD, notice_delivery.SETTLE = 1.0, 0.2
