# A guest that fits into one sector: it says its name, repeats what is typed on the
# keyboard or the serial line, and obeys the power button.
#
# Source of boot.oct; run ./assemble after a change. GNU as, 16-bit code, BIOS machine.
#
# The second sector of the disk holds what differs between instances:
#   offset   0  8 bytes   GNTBOOT1
#            8  1 byte    0: only wait, 1: print a beat every second
#           16  192 bytes greeting, ends with a zero byte
#          208  256 bytes name of the instance, ends with a zero byte

        .intel_syntax noprefix
        .code16

        .set    DATA, 0x7e00            # where the second sector is put
        .set    MODE, DATA + 8
        .set    GREETING, DATA + 16
        .set    NAME, DATA + 208
        .set    VIDEO, 0x43             # upper half of the segment of interrupt 10h
        .set    TICKS, 0x46c            # counted by the BIOS, 18.2 a second
        .set    SECOND, 18              # ticks
        .set    COM1, 0x3f8
        # Power management of the machine types pc and q35, as SeaBIOS places it.
        .set    PM_STATUS, 0x600
        .set    PM_ENABLE, 0x602
        .set    PM_CONTROL, 0x604
        .set    BUTTON, 0x100           # bit of the power button in status and enable
        .set    SOFT_OFF, 0x2000        # sleep enable, sleep type 0

start:
        cli
        xor     ax, ax
        mov     ds, ax
        mov     es, ax
        mov     ss, ax
        mov     sp, 0x7c00
        ljmp    0, offset main
main:
        sti
        cld
        mov     ax, 0x0201              # read one sector (drive in dl is given)
        mov     bx, DATA
        mov     cx, 0x0002              # cylinder 0, sector 2
        mov     dh, ch                  # head 0
        int     0x13
        sbb     bp, bp                  # -1 when that failed

        mov     si, offset uart         # 115200 8N1, FIFO on
        mov     cx, offset (uart_end - uart) / 2
1:      lodsw
        mov     dx, COM1
        add     dl, al
        mov     al, ah
        out     dx, al
        loop    1b

        mov     dx, PM_STATUS           # forget an old press, then listen
        mov     ax, BUTTON
        out     dx, ax
        mov     dl, PM_ENABLE & 0xff
        out     dx, ax
        in      ax, dx
        cmp     ax, BUTTON              # reads back only where there is such a register
        sete    byte ptr [obeys]

        hlt                             # two ticks, in which SeaBIOS ends its own line
        hlt                             # when it too writes to the serial line
        mov     si, offset failed
        test    bp, bp
        jnz     2f
        mov     si, GREETING
        call    puts
        mov     si, offset space
        call    puts
        mov     si, NAME
2:      call    puts
        mov     si, offset newline
        call    puts
        mov     ax, [TICKS]
        mov     [last], ax

wait:
        hlt                             # sleeps until the next interrupt
        cmp     byte ptr [obeys], 1
        jne     3f
        mov     dx, PM_STATUS
        in      ax, dx
        test    ax, BUTTON
        jz      3f
        mov     ax, BUTTON
        out     dx, ax
        mov     dl, PM_CONTROL & 0xff
        mov     ax, SOFT_OFF
        out     dx, ax
3:      mov     ah, 1                   # a key was pressed: show it
        int     0x16
        jz      8f
        mov     ah, 0
        int     0x16
        call    putc
8:      mov     dx, COM1 + 5            # the same for what came on the serial line
        in      al, dx
        test    al, 1
        jz      9f
        mov     dl, COM1 & 0xff
        in      al, dx
        call    putc
        jmp     8b
9:
        cmp     byte ptr [MODE], 1
        jne     wait
        mov     ax, [TICKS]
        sub     ax, [last]
        cmp     ax, SECOND
        jb      wait
        add     word ptr [last], SECOND
        inc     dword ptr [beats]
        mov     si, offset beat
        call    puts
        mov     eax, [beats]
        call    number
        mov     si, offset newline
        call    puts
        jmp     wait

# Print eax as a decimal number.
number:
        xor     edx, edx
        mov     ecx, 10
        div     ecx
        push    dx
        test    eax, eax
        jz      4f
        call    number
4:      pop     ax
        add     al, '0'

# Print al on the serial line, and on the screen when a video BIOS owns interrupt 10h: SeaBIOS
# may route that interrupt to the serial line, which would double every character.
putc:
        pusha
        mov     bl, al
        xor     cx, cx                  # waits a bounded time for room
        mov     dx, COM1 + 5
5:      in      al, dx
        test    al, 0x20
        loopz   5b
        mov     al, bl
        mov     dl, COM1 & 0xff
        out     dx, al
        cmp     byte ptr [VIDEO], 0xc0
        jne     6f
        mov     ah, 0x0e
        mov     bx, 7
        int     0x10
6:      popa
        ret

# Print the text at si up to its zero byte.
puts:
        lodsb
        test    al, al
        jz      7f
        call    putc
        jmp     puts
7:      ret

uart:   # register, value
        .byte   1, 0, 3, 0x80, 0, 1, 1, 0, 3, 3, 2, 0xc7, 4, 3
uart_end:
failed: .asciz  "bootsector: cannot read the second sector"
beat:   .asciz  "beat "
space:  .asciz  " "
newline: .asciz "\r\n"
obeys:  .byte   0
last:   .word   0
beats:  .long   0

        .org    446                     # fails when the code grows into the partition table
        .org    510
        .byte   0x55, 0xaa
